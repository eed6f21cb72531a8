;;; contexture-tree.el --- Add directories and projects  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-add-directory' and `contexture-add-project' make the server
;; walk a directory.  Emacs does not wait: the echo area shows the progress,
;; `C-g' or `contexture-cancel' ends the walk, and at the end a message says
;; what was added, what was left out, and why.

;;; Code:

(require 'contexture)
(eval-when-compile (require 'subr-x))

(declare-function jsonrpc-notify "jsonrpc" (connection method params))
(declare-function jsonrpc-running-p "jsonrpc" (conn))

(cl-defstruct (contexture-tree--walk (:constructor contexture-tree--make-walk)
                                     (:copier nil))
  "A directory that is being added to a context.
ASKED is non-nil if the server was asked to cancel it, and FORGOTTEN if
Emacs no longer waits for an answer."
  connection id root manager unsaved asked forgotten)

(defvar contexture-tree--walks nil
  "Walks that have not ended, the newest first.")

(defvar contexture-tree--release nil
  "Function that restores the quit key's usual meaning.")

(defvar contexture-tree--map
  (let ((map (make-sparse-keymap)))
    (define-key map [remap keyboard-quit] #'contexture-cancel)
    map)
  "Keymap in force while a directory is being added.")

(defconst contexture-tree--names 3
  "Maximum number of files named for each reason to leave files out.")

;;;; Commands

;;;###autoload
(defun contexture-add-directory (directory &optional mode hidden)
  "Add the files below DIRECTORY to this buffer's context.
The server reads them and skips ignored files, hidden files and files
that are not text.  MODE is `files', which makes each file an item, or
`listing', which makes one item of their names, sizes and tokens.  With
HIDDEN, the prefix argument, include hidden files.  Emacs does not wait;
\\[contexture-cancel] cancels."
  (interactive
   (list (read-directory-name "Add directory: " nil default-directory t)
         (contexture-tree--read-mode)
         (contexture--own-prefix)))
  (when (file-remote-p directory)
    (user-error "The server cannot read directories on other machines"))
  (let ((root (file-name-as-directory (expand-file-name directory))))
    (unless (file-directory-p root)
      (contexture--user-error "%s is not a directory" (abbreviate-file-name root)))
    (contexture-tree--add root (or mode 'files) hidden)))

;;;###autoload
(defun contexture-add-project (&optional mode hidden)
  "Add the files of the project around this buffer to its context.
MODE and HIDDEN are as in `contexture-add-directory'."
  (interactive
   (progn (contexture-tree--project)
          (list (contexture-tree--read-mode) (contexture--own-prefix))))
  (contexture-add-directory (contexture-tree--project) mode hidden))

;;;###autoload
(defun contexture-cancel ()
  "Stop adding directories; none of their files are added.
Use it again to give up on a server that does not answer."
  (interactive)
  (unless contexture-tree--walks
    (user-error "No directory is being added"))
  (message "Cancelling...")
  (mapc #'contexture-tree--cancel contexture-tree--walks))

(defun contexture-tree--project ()
  "Return the root of the project around this buffer."
  (or (contexture--project-root)
      (user-error "This buffer belongs to no project")))

(defun contexture-tree--read-mode ()
  "Ask how to add the files; return `files' or `listing'."
  (let ((completion-extra-properties
         (list :annotation-function
               (lambda (mode)
                 (if (equal mode "files") "  each file is an item"
                   "  one item with names, sizes and tokens")))))
    (intern (completing-read (format-prompt "Add files or a listing" "files") '("files" "listing")
                             nil t nil nil "files"))))

;;;; A walk

(defun contexture-tree--add (root mode hidden)
  "Make the server walk ROOT with MODE and HIDDEN."
  (let* ((manager (contexture-current-manager))
         (walk (contexture-tree--make-walk
                :root root :manager manager
                :connection (contexture-current-connection)
                :unsaved (contexture-tree--unsaved root))))
    (setq contexture--last-manager manager
          contexture--last-changed manager)
    (setf (contexture-tree--walk-id walk)
          (contexture-request-async
           'add-tree
           (contexture--plist :path root :manager manager
                              :mode (intern (format ":%s" mode))
                              :hidden (and hidden t)
                              :live (and (eq mode 'files) t))
           :success (apply-partially #'contexture-tree--added walk)
           :error (apply-partially #'contexture-tree--refused walk)))
    (contexture-tree--begin walk)))

(defun contexture-tree--begin (walk)
  "Record that WALK has begun."
  (push walk contexture-tree--walks)
  (add-hook 'contexture-notification-functions #'contexture-tree--progress)
  (add-hook 'contexture-connected-hook #'contexture-tree--cancel-again)
  (unless contexture-tree--release
    (setq contexture-tree--release
          (set-transient-map contexture-tree--map
                             (lambda () contexture-tree--walks))))
  (contexture-tree--show "%s" (contexture-tree--progress-text walk nil)))

(defun contexture-tree--end (walk)
  "Record that WALK has ended."
  (setq contexture-tree--walks (delq walk contexture-tree--walks))
  (unless contexture-tree--walks
    (remove-hook 'contexture-notification-functions #'contexture-tree--progress)
    (remove-hook 'contexture-connected-hook #'contexture-tree--cancel-again)
    (when contexture-tree--release
      (funcall contexture-tree--release)
      (setq contexture-tree--release nil))))

(defun contexture-tree--cancel (walk)
  "Ask the server to stop WALK or, if it was asked already, forget WALK."
  (let ((connection (contexture-tree--walk-connection walk)))
    (if (and (jsonrpc-running-p connection)
             (not (contexture-tree--walk-asked walk)))
        (progn (setf (contexture-tree--walk-asked walk) t)
               (contexture-tree--send-cancel walk))
      (setf (contexture-tree--walk-forgotten walk) t)
      (contexture--cancel connection (contexture-tree--walk-id walk)))))

(defun contexture-tree--send-cancel (walk)
  "Ask the server to stop WALK.
The answer to WALK's own call shows whether this request came in time."
  (jsonrpc-notify (contexture-tree--walk-connection walk) 'cancel
                  (list :id (contexture-tree--walk-id walk))))

(defun contexture-tree--cancel-again ()
  "Cancel again the walks that were cancelled before the server went away.
The unanswered calls were just repeated."
  (dolist (walk contexture-tree--walks)
    (when (and (contexture-tree--walk-asked walk)
               (jsonrpc-running-p (contexture-tree--walk-connection walk)))
      (contexture-tree--send-cancel walk))))

(defun contexture-tree--unsaved (root)
  "Return the number of files below ROOT with unsaved edits."
  (cl-count-if (lambda (buffer)
                 (and (buffer-modified-p buffer)
                      (buffer-file-name buffer)
                      (string-prefix-p root (expand-file-name
                                             (buffer-file-name buffer)))))
               (buffer-list)))

;;;; Messages

(defun contexture-tree--show (format &rest args)
  "Show FORMAT with ARGS in the echo area, unless the user types there."
  (unless (active-minibuffer-window)
    (let ((message-log-max nil))
      (apply #'message format args))))

(defun contexture-tree--progress (method params)
  "Show the progress of a walk if METHOD with PARAMS reports it."
  (when (eq method 'progress)
    (when-let* ((walk (cl-find (plist-get params :id) contexture-tree--walks
                               :key #'contexture-tree--walk-id)))
      (unless (contexture-tree--walk-asked walk)
        (contexture-tree--show
         "%s" (contexture-tree--progress-text walk params))))))

(defun contexture-tree--progress-text (walk params)
  "Return a phrase for the progress of WALK, from PARAMS or nil."
  (format "Adding %s to %s%s (%s cancels)"
          (abbreviate-file-name (contexture-tree--walk-root walk))
          (contexture--label (contexture-tree--walk-manager walk))
          (if params
              (format ": %s %s, %s"
                      (contexture--count (or (plist-get params :files) 0) "file")
                      (if (eq (plist-get params :stage) :walking) "found" "read")
                      (file-size-human-readable (or (plist-get params :bytes) 0)
                                                'si " " "B"))
            "...")
          (substitute-command-keys "\\[keyboard-quit]")))

(defun contexture-tree--added (walk result)
  "Say that WALK has ended with RESULT."
  (contexture-tree--end walk)
  (let ((manager (contexture-tree--walk-manager walk)))
    (contexture-request-async
     'count-items (list :manager manager)
     :success
     (lambda (summary)
       (contexture--note-totals manager (plist-get summary :count)
                                (plist-get summary :tokens)
                                (plist-get summary :version))
       (contexture--message "%s" (contexture-tree--added-text walk result summary))))))

(defun contexture-tree--added-text (walk result summary)
  "Return the message for WALK, which ended with RESULT.
SUMMARY says what the context holds now."
  (let ((files (or (plist-get result :files) 0))
        (evicted (length (plist-get result :evicted)))
        (unsaved (contexture-tree--walk-unsaved walk)))
    (concat
     (format "Added %s%s of %s (%s) to %s (%s)"
             (if (eq (plist-get result :mode) :listing) "a listing of " "")
             (contexture--count files "file")
             (abbreviate-file-name (contexture-tree--walk-root walk))
             (contexture--count (or (plist-get result :tokens) 0) "token")
             (contexture--label (contexture-tree--walk-manager walk))
             (contexture--size (plist-get summary :count)
                               (plist-get summary :tokens)))
     (if (> evicted 0)
         (format "; it is full, so the oldest %s left it"
                 (contexture--count evicted "item"))
       "")
     (contexture-tree--skipped-text (plist-get result :skipped))
     (if (> unsaved 0)
         (format "; unsaved edits of %s are not included"
                 (contexture--count unsaved "file"))
       ""))))

(defun contexture-tree--skipped-text (skipped)
  "Return a phrase for SKIPPED, the entries left out and the reasons."
  (let ((total (plist-get skipped :total))
        (named (plist-get skipped :named)))
    (if (null total) ""
      (format "; left out %s"
              (mapconcat
               (lambda (pair)
                 (pcase-let ((`(,reason ,number) pair))
                   (format "%d %s (%s)" number
                           (string-replace "-" " " (contexture--name reason))
                           (contexture-tree--names reason number named))))
               (seq-partition total 2) ", ")))))

(defun contexture-tree--names (reason number named)
  "Return some names, from NAMED, of the NUMBER entries left out for REASON."
  (let ((names (cl-loop for entry in named
                        when (eq (plist-get entry :reason) reason)
                        collect (plist-get entry :path))))
    (mapconcat #'identity
               (append (seq-take names contexture-tree--names)
                       (and (> number (min (length names) contexture-tree--names))
                            '("...")))
               ", ")))

(defun contexture-tree--refused (walk problem)
  "Say that nothing of WALK was added because of PROBLEM."
  (contexture-tree--end walk)
  (let ((root (abbreviate-file-name (contexture-tree--walk-root walk)))
        (label (contexture--label (contexture-tree--walk-manager walk))))
    (cond ((contexture-tree--walk-forgotten walk)
           (contexture--message "Gave up on %s; the server may still add it to %s" root label))
          ((eql (plist-get problem :code) -32800)
           (contexture--message "Cancelled: nothing of %s was added to %s" root label))
          (t (contexture--tell-refused (contexture-tree--walk-manager walk)
                                       problem)))))

(provide 'contexture-tree)
;;; contexture-tree.el ends here
