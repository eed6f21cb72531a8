;;; contexture-sly.el --- Context from SLY  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Definitions, interactions, errors, inspectors and compiler notes of a
;; Lisp that SLY is connected to become context.  With
;; `contexture-sly-mode', the commands have keys behind SLY's prefix,
;; and you can type prose in REPLs connected to Contexture.
;;
;; Loading this does not load SLY.  Written for SLY 1.0.43.

;;; Code:

(require 'contexture-lisp)

(declare-function sly-autodoc-mode "ext:sly-autodoc" (&optional arg))
(declare-function sly-current-connection "ext:sly" ())
(declare-function sly-current-package "ext:sly" ())
(declare-function sly-dispatch-event "ext:sly" (event &optional process))
(declare-function sly-from-lisp-filename "ext:sly" (filename))
(declare-function sly-lisp-implementation-type "ext:sly" t t)
(declare-function sly-lisp-implementation-version "ext:sly" t t)
(declare-function sly-location-offset "ext:sly" (location))
(declare-function sly-mrepl--find-buffer "ext:sly-mrepl" (&optional connection thread))
(declare-function sly-symbol-at-point "ext:sly" ())

(defvar sly-db-condition)
(defvar sly-db-restarts)
(defvar sly-autodoc-mode)
(defvar sly-buffer-connection)
(defvar sly-current-thread)
(defvar sly-dispatching-connection)
(defvar sly-net-processes)
(defvar sly-prefix-map)

;;;; SLY, for what is shared with SLIME

(defun contexture-sly--send (connection form package thread continuation)
  "Have THREAD of CONNECTION evaluate FORM in PACKAGE.
CONTINUATION is called with (:ok VALUE) or (:abort REASON)."
  (sly-dispatch-event (list :emacs-rex form package thread continuation)
                        connection))

(defun contexture-sly--package (connection)
  "Return the name of the package at point, or that of the REPL of CONNECTION."
  (let ((sly-dispatching-connection connection))
    (sly-current-package)))

(defun contexture-sly--kind (position)
  "Return the kind of a REPL's text at POSITION, a symbol or nil."
  (pcase (get-text-property position 'field)
    ('sly-mrepl-input 'input)
    ;; Input that a program has read is in no field.
    ((or 'sly-mrepl--output 'nil) 'output)
    ;; Text typed at a prompt has the property too, but not the field.
    ((guard (get-text-property position 'sly-mrepl--prompt)) 'prompt)))

(defun contexture-sly--repl (connection)
  "Return the REPL of CONNECTION, or nil."
  (when (fboundp 'sly-mrepl--find-buffer)
    (sly-mrepl--find-buffer connection)))

(defun contexture-sly--debugger ()
  "Return the facts of this debugger's error."
  (list :message (substring-no-properties (nth 0 sly-db-condition))
        :type (string-trim (substring-no-properties (nth 1 sly-db-condition))
                           "[ \t]*\\[" "\\][ \t]*")
        :restarts (mapcar (lambda (restart)
                            (substring-no-properties
                             (format "[%s] %s" (nth 0 restart) (nth 1 restart))))
                          sly-db-restarts)
        :thread sly-current-thread
        :connection sly-buffer-connection
        :buffer (buffer-name)))

(defun contexture-sly--autodoc (&rest switch)
  "Return whether argument lists are shown in this buffer.
With SWITCH, a list of one element, turn them on or off."
  (when switch
    (sly-autodoc-mode (if (car switch) 1 -1)))
  (bound-and-true-p sly-autodoc-mode))

(defconst contexture-sly--client
  (contexture-lisp--make-client
   :feature 'sly
   :name "SLY"
   :prefix "slynk"
   :completions 'slynk-completion:simple-completions
   :connections (lambda () sly-net-processes)
   :current #'sly-current-connection
   :type (lambda (connection) (sly-lisp-implementation-type connection))
   :version (lambda (connection) (sly-lisp-implementation-version connection))
   :send #'contexture-sly--send
   :package #'contexture-sly--package
   :symbol #'sly-symbol-at-point
   :filename #'sly-from-lisp-filename
   :offset #'sly-location-offset
   :repl-mode 'sly-mrepl-mode
   :repl #'contexture-sly--repl
   :kind #'contexture-sly--kind
   :buffer-connection (lambda () sly-buffer-connection)
   :debugger-mode 'sly-db-mode
   :debugger #'contexture-sly--debugger
   :inspector-mode 'sly-inspector-mode
   :note-property 'sly-note
   :prefix-map (lambda () sly-prefix-map)
   :repl-hook 'sly-mrepl-hook
   :event-hook 'sly-event-hooks
   :autodoc #'contexture-sly--autodoc)
  "SLY's names and functions, for the code shared with SLIME.")

;;;; Commands

;;;###autoload (autoload 'contexture-sly-add-symbol "contexture-sly" nil t)
;;;###autoload (autoload 'contexture-sly-add-history "contexture-sly" nil t)
;;;###autoload (autoload 'contexture-sly-add-error "contexture-sly" nil t)
;;;###autoload (autoload 'contexture-sly-add-inspector "contexture-sly" nil t)
;;;###autoload (autoload 'contexture-sly-add-note "contexture-sly" nil t)
(contexture-lisp--define-commands sly "SLY" contexture-sly--client)

;;;###autoload
(define-minor-mode contexture-sly-mode
  "Add to the context with keys in SLY, and write prose to Contexture.
The commands are on SLY's prefix followed by `contexture-lisp-key'.  In
REPLs connected to Contexture, and only there, a comma inserts itself and
no argument lists are shown."
  :global t
  :group 'contexture
  (contexture-lisp--turn 'contexture-sly-mode contexture-sly--client))

(provide 'contexture-sly)
;;; contexture-sly.el ends here
