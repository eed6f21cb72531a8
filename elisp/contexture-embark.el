;;; contexture-embark.el --- Act on items and sessions with Embark  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Actions for the package Embark, on an item or a session that you are
;; choosing in the minibuffer.  `contexture--table' loads this file when
;; Embark is there; nothing of Embark is needed to load it.

;;; Code:

(require 'contexture-session)
(eval-when-compile (require 'subr-x))

(defvar embark-keymap-alist)

;; Embark calls functions that are no commands with the name that was chosen.

;;;; Items

(defun contexture-embark--item (name)
  "Return the item of this buffer's context with the unique NAME."
  (or (cdr (assoc name (contexture-sets--name-items
                        (reverse (contexture--ask
                                  'list-items
                                  (append (contexture--context-params
                                           (contexture-current-context))
                                          '(:brief t)))))))
      (contexture--user-error "The context no longer has %s" name)))

(defun contexture-embark-visit (name)
  "Go to where the item with NAME came from."
  (let ((metadata (plist-get (contexture-embark--item name) :metadata)))
    (contexture-list-item--visit
     (or (contexture-list-item--source-buffer metadata)
         (contexture--user-error "%s is gone" (contexture--place metadata)))
     metadata)))

(defun contexture-embark-remove (name)
  "Remove the item with NAME; `contexture-undo' brings it back."
  (let ((item (contexture-embark--item name)))
    (contexture-remove (list (plist-get item :id)) name (plist-get item :manager))))

(defun contexture-embark-freeze (name)
  "Make a snapshot of the item with NAME."
  (contexture-freeze (contexture-embark--item name)))

(defun contexture-embark-follow (name)
  "Let the item with NAME follow its source again."
  (contexture-freeze (contexture-embark--item name) t))

(defvar contexture-embark-item-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-embark-visit)
    (define-key map "o" #'contexture-embark-visit)
    (define-key map "x" #'contexture-embark-remove)
    (define-key map "Z" #'contexture-embark-freeze)
    (define-key map "F" #'contexture-embark-follow)
    map)
  "Keymap of Embark for an item.")

;;;; Sessions

(defun contexture-embark--session (name)
  "Return the id of the session with the unique NAME."
  (if-let* ((entry (assoc name (contexture-session--name-entries
                                (contexture--ask 'list-sessions nil)))))
      (contexture-session--id (cdr entry))
    (contexture--user-error "There is no session %s" name)))

(defun contexture-embark-talk (name)
  "Open the conversation of the session with NAME."
  (contexture-repl name))

(defun contexture-embark-dashboard (name)
  "Show how full the session with NAME is."
  (contexture-dashboard (contexture-embark--session name)))

(defun contexture-embark-transcript (name)
  "Show the transcript of the session with NAME."
  (contexture-session-transcript (contexture-embark--session name)))

(defun contexture-embark-explain (name)
  "Show why each part of the last window of the session with NAME is in or out."
  (contexture-explain 1 (contexture-embark--session name)))

(defun contexture-embark-export (name)
  "Show the session with NAME as Markdown, to be saved."
  (contexture-session-export (contexture-embark--session name)))

(defun contexture-embark-delete (name)
  "Delete the session with NAME; `contexture-session-restore' brings it back."
  (contexture-session-delete (contexture-embark--session name)))

(defvar contexture-embark-session-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-embark-talk)
    (define-key map "o" #'contexture-embark-talk)
    (define-key map "v" #'contexture-embark-dashboard)
    (define-key map "t" #'contexture-embark-transcript)
    (define-key map "e" #'contexture-embark-explain)
    (define-key map "x" #'contexture-embark-export)
    (define-key map "d" #'contexture-embark-delete)
    map)
  "Keymap of Embark for a session.")

;;;; Offering them

(defun contexture-embark--offer ()
  "Let Embark, which is loaded, offer these actions."
  (add-to-list 'embark-keymap-alist '(contexture-item . contexture-embark-item-map))
  (add-to-list 'embark-keymap-alist '(contexture-session . contexture-embark-session-map)))

(provide 'contexture-embark)
;;; contexture-embark.el ends here
