;;; contexture-slime.el --- Context from SLIME  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Definitions, interactions, errors, inspectors and compiler notes of a
;; Lisp that SLIME is connected to become context.  With
;; `contexture-slime-mode', the commands have keys behind SLIME's prefix,
;; and you can type prose in REPLs connected to Contexture.
;;
;; Loading this does not load SLIME.  Written for SLIME 2.27.

;;; Code:

(require 'contexture-lisp)

(declare-function slime-autodoc-mode "ext:slime-autodoc" (&optional arg))
(declare-function slime-connection-output-buffer "ext:slime-repl" t t)
(declare-function slime-current-connection "ext:slime" ())
(declare-function slime-current-package "ext:slime" ())
(declare-function slime-dispatch-event "ext:slime" (event &optional process))
(declare-function slime-from-lisp-filename "ext:slime" (filename))
(declare-function slime-lisp-implementation-type "ext:slime" t t)
(declare-function slime-lisp-implementation-version "ext:slime" t t)
(declare-function slime-location-offset "ext:slime" (location))
(declare-function slime-symbol-at-point "ext:slime" ())

(defvar sldb-condition)
(defvar sldb-restarts)
(defvar slime-autodoc-mode)
(defvar slime-buffer-connection)
(defvar slime-current-thread)
(defvar slime-dispatching-connection)
(defvar slime-net-processes)
(defvar slime-prefix-map)

;;;; SLIME, for what is shared with SLY

(defun contexture-slime--send (connection form package thread continuation)
  "Have THREAD of CONNECTION evaluate FORM in PACKAGE.
CONTINUATION is called with (:ok VALUE) or (:abort REASON)."
  (slime-dispatch-event (list :emacs-rex form package thread continuation)
                        connection))

(defun contexture-slime--package (connection)
  "Return the name of the package at point, or that of the REPL of CONNECTION."
  (let ((slime-dispatching-connection connection))
    (slime-current-package)))

(defun contexture-slime--kind (position)
  "Return the kind of a REPL's text at POSITION, a symbol or nil."
  (cond ((get-text-property position 'slime-repl-prompt) 'prompt)
        ((get-text-property position 'slime-repl-old-input) 'input)
        ((get-text-property position 'slime-repl-output) 'output)))

(defun contexture-slime--repl (connection)
  "Return the REPL of CONNECTION, or nil."
  (when (fboundp 'slime-connection-output-buffer)
    (let ((buffer (slime-connection-output-buffer connection)))
      (and (buffer-live-p buffer) buffer))))

(defun contexture-slime--debugger ()
  "Return the facts of this debugger's error."
  (list :message (substring-no-properties (nth 0 sldb-condition))
        :type (string-trim (substring-no-properties (nth 1 sldb-condition))
                           "[ \t]*\\[" "\\][ \t]*")
        :restarts (mapcar (lambda (restart)
                            (substring-no-properties
                             (format "[%s] %s" (nth 0 restart) (nth 1 restart))))
                          sldb-restarts)
        :thread slime-current-thread
        :connection slime-buffer-connection
        :buffer (buffer-name)))

(defun contexture-slime--autodoc (&rest switch)
  "Return whether argument lists are shown in this buffer.
With SWITCH, a list of one element, turn them on or off.  SLIME leaves the
variable of its mode non-nil when the mode is turned off, so reset it."
  (when switch
    (slime-autodoc-mode (if (car switch) 1 0))
    (unless (car switch)
      (remove-hook 'eldoc-documentation-functions 'slime-autodoc t)
      (setq slime-autodoc-mode nil)))
  (bound-and-true-p slime-autodoc-mode))

(defconst contexture-slime--client
  (contexture-lisp--make-client
   :feature 'slime
   :name "SLIME"
   :prefix "swank"
   :completions 'swank:simple-completions
   :connections (lambda () slime-net-processes)
   :current #'slime-current-connection
   :type (lambda (connection) (slime-lisp-implementation-type connection))
   :version (lambda (connection) (slime-lisp-implementation-version connection))
   :send #'contexture-slime--send
   :package #'contexture-slime--package
   :symbol #'slime-symbol-at-point
   :filename #'slime-from-lisp-filename
   :offset #'slime-location-offset
   :repl-mode 'slime-repl-mode
   :repl #'contexture-slime--repl
   :kind #'contexture-slime--kind
   :buffer-connection (lambda () slime-buffer-connection)
   :debugger-mode 'sldb-mode
   :debugger #'contexture-slime--debugger
   :inspector-mode 'slime-inspector-mode
   :note-property 'slime-note
   :prefix-map (lambda () slime-prefix-map)
   :repl-hook 'slime-repl-mode-hook
   :event-hook 'slime-event-hooks
   :autodoc #'contexture-slime--autodoc)
  "SLIME's names and functions, for the code shared with SLY.")

;;;; Commands

;;;###autoload (autoload 'contexture-slime-add-symbol "contexture-slime" nil t)
;;;###autoload (autoload 'contexture-slime-add-history "contexture-slime" nil t)
;;;###autoload (autoload 'contexture-slime-add-error "contexture-slime" nil t)
;;;###autoload (autoload 'contexture-slime-add-inspector "contexture-slime" nil t)
;;;###autoload (autoload 'contexture-slime-add-note "contexture-slime" nil t)
(contexture-lisp--define-commands slime "SLIME" contexture-slime--client)

;;;###autoload
(define-minor-mode contexture-slime-mode
  "Add to the context with keys in SLIME, and write prose to Contexture.
The commands are on SLIME's prefix followed by `contexture-lisp-key'.
In REPLs connected to Contexture, and only there, a comma inserts itself
and no argument lists are shown."
  :global t
  :group 'contexture
  (contexture-lisp--turn 'contexture-slime-mode contexture-slime--client))

(provide 'contexture-slime)
;;; contexture-slime.el ends here
