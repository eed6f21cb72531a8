;;; todo-context.el --- Give the TODOs of a buffer to Contexture  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1") (contexture "0.1.0"))
;; Keywords: tools

;;; Commentary:

;; A sample of a package that uses Contexture.  M-x todo-context-add
;; collects the TODO and FIXME lines of a buffer in one context,
;; M-x todo-context-insert inserts them where you write to a model, and
;; M-x todo-context-ask asks a model about them.

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

;;;; Asking a model

(defvar todo-context--answer nil
  "Pair of the id of the call that is being answered, and where the answer goes.")

;;;###autoload
(defun todo-context-ask (question)
  "Ask the model QUESTION about what there is to do; insert its answer at point.
The model may look at the context if you allow it."
  (interactive "sAsk about what there is to do: ")
  (contexture-watch #'todo-context--hear)
  (contexture-request 'open-session (list :name todo-context-manager))
  (let ((place (copy-marker (point) t)))
    (setq todo-context--answer
          (cons (contexture-request-async
                 'chat (list :session todo-context-manager :content question
                             :managers (list todo-context-manager)
                             :tools '(:read))
                 :success (lambda (_) (todo-context--end "The model has answered"))
                 :error (lambda (problem)
                          (todo-context--end (plist-get problem :message))))
                place))))

(defun todo-context-stop ()
  "Stop the model that is answering."
  (interactive)
  (contexture-notify 'cancel (list :id (car todo-context--answer))))

(defun todo-context--hear (method params)
  "Insert what the model says, and ask what it may do.
METHOD and PARAMS are those of a notification."
  (when (and (eq method 'progress)
             (equal (plist-get params :id) (car todo-context--answer)))
    (pcase (plist-get params :kind)
      (:text (with-current-buffer (marker-buffer (cdr todo-context--answer))
               (save-excursion
                 (goto-char (cdr todo-context--answer))
                 (insert (plist-get params :text)))))
      (:approval (contexture-request-async
                  'approve (list :approval (plist-get params :approval)
                                 :decision (if (y-or-n-p (format "Let the model %s? "
                                                                 (plist-get params :text)))
                                               :once
                                             :refuse)))))))

(defun todo-context--end (text)
  "End the answer, and show TEXT."
  (contexture-unwatch #'todo-context--hear)
  (setq todo-context--answer nil)
  (message "%s" text))

(provide 'todo-context)
;;; todo-context.el ends here
