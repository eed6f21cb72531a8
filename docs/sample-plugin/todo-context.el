;;; todo-context.el --- Give the TODOs of a buffer to Contexture  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1") (contexture "0.1.0"))
;; Keywords: tools

;;; Commentary:

;; A sample of a package that uses Contexture.  M-x todo-context-add
;; collects the TODO and FIXME lines of a buffer in one context, and
;; M-x todo-context-insert inserts them where you write to a model.

;;; Code:

(require 'cl-lib)
(require 'contexture-rpc)

(defgroup todo-context nil
  "Give the TODOs of a buffer to Contexture."
  :group 'tools)

(defcustom todo-context-manager "todos"
  "Name of the context that collects what there is to do."
  :type 'string)

(defcustom todo-context-regexp "\\<\\(?:TODO\\|FIXME\\)\\>"
  "What a line has if there is something to do in it."
  :type 'regexp)

(defun todo-context--notes ()
  "Return what to add for this buffer, a list of property lists."
  (save-excursion
    (goto-char (point-min))
    (cl-loop while (re-search-forward todo-context-regexp nil t)
             collect (todo-context--note)
             do (end-of-line))))

(defun todo-context--note ()
  "Return the parameters that add the line at point."
  (let ((line (line-number-at-pos nil t)))
    (list :manager todo-context-manager
          :type :code
          :content (buffer-substring-no-properties
                    (line-beginning-position) (line-end-position))
          :metadata (list :filename (buffer-file-name) :buffer (buffer-name)
                          :start-line line :end-line line :origin :note))))

;;;###autoload
(defun todo-context-add ()
  "Add the lines of this buffer in which there is something to do."
  (interactive)
  (let* ((notes (or (todo-context--notes)
                    (user-error "There is nothing to do in this buffer")))
         (left (length notes)))
    (dolist (note notes)
      (contexture-request-async
       'add-item note
       :success (lambda (_)
                  (when (zerop (cl-decf left))
                    (message "Added %d TODOs" (length notes))))))))

;;;###autoload
(defun todo-context-insert ()
  "Insert all that there is to do at point, as Markdown."
  (interactive)
  (insert (contexture-request 'context-to-string
                              (list :manager todo-context-manager))))

(provide 'todo-context)
;;; todo-context.el ends here
