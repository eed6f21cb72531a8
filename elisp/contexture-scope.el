;;; contexture-scope.el --- Which context a buffer has  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The name of the context that the commands in a buffer work on, its name
;; in messages, and the project that it may depend on.

;;; Code:

(eval-when-compile (require 'subr-x))

(declare-function project-root "project" (project))

(defcustom contexture-scope 'buffer
  "Context that commands in a buffer use, unless `contexture-manager' is set.
`buffer' means one for each buffer, `project' one for each project (and
each buffer outside of one), `shared' one for all.  A function is called
without arguments in the buffer and returns the context's name."
  :type '(choice (const :tag "One per buffer" buffer)
                 (const :tag "One per project" project)
                 (const :tag "One for all" shared)
                 (function :tag "Function"))
  :group 'contexture)

(defvar-local contexture-manager nil
  "Name of the context that this buffer's commands work on.
Nil means that `contexture-scope' decides.")

(defconst contexture--shared "*shared*"
  "Name of the context that belongs to no buffer.")

(defvar contexture--project-roots (make-hash-table :test #'equal)
  "Hash table from a directory to its project's root.
Directories without a project are not cached: they may get one.")

;;;; Which context

(defun contexture-current-manager ()
  "Return the name of the context that commands in this buffer work on."
  (with-current-buffer (contexture--asking-buffer)
    (or contexture-manager
        (with-current-buffer (contexture--base-buffer)
          (pcase contexture-scope
            ('buffer (buffer-name))
            ('project (if-let* ((root (contexture--project-root)))
                          (abbreviate-file-name root)
                        (buffer-name)))
            ('shared contexture--shared)
            (function (funcall function)))))))

(defun contexture--asking-buffer ()
  "Return the current buffer; in the minibuffer, the one it was called from."
  (if-let* ((window (and (minibufferp) (minibuffer-selected-window))))
      (window-buffer window)
    (current-buffer)))

(defun contexture--known-manager ()
  "Return the value of `contexture-current-manager' without any search.
A mode line must not run version control programs."
  (if (or contexture-manager (not (eq contexture-scope 'project)))
      (contexture-current-manager)
    (if-let* ((root (gethash default-directory contexture--project-roots)))
        (abbreviate-file-name root)
      (buffer-name (contexture--base-buffer)))))

(defun contexture--base-buffer ()
  "Return the current buffer, or its base if it is an indirect one."
  (or (buffer-base-buffer) (current-buffer)))

(defun contexture--project-root ()
  "Return the absolute root of the project around this buffer, or nil.
Remote directories are not searched: that may take long."
  (unless (file-remote-p default-directory)
    (or (gethash default-directory contexture--project-roots)
        (when-let* ((project (project-current)))
          (puthash default-directory (expand-file-name (project-root project))
                   contexture--project-roots)))))

(defun contexture--label (manager)
  "Return the name of the context MANAGER for messages."
  (cond ((equal manager contexture--shared) "the shared context")
        ((get-buffer manager) (concat "buffer " (contexture--visible manager)))
        ((string-suffix-p "/" manager) (concat "project " (contexture--visible manager)))
        (t (contexture--visible manager))))

(defun contexture--capitalized (text)
  "Return TEXT with its first letter, and no other, as a capital."
  (concat (upcase (substring text 0 1)) (substring text 1)))

(provide 'contexture-scope)
;;; contexture-scope.el ends here
