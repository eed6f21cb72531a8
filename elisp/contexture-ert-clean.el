;;; contexture-ert-clean.el --- Leave nothing behind  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Says what a test left behind, and removes it: buffers, also hidden
;; ones, processes, timers and hooks.  One thing that cannot be removed
;; does not keep the others.

;;; Code:

(require 'cl-lib)
(require 'seq)

(defvar contexture-ert-hooks
  '(after-change-functions after-change-major-mode-hook after-init-hook
    after-load-functions after-save-hook before-change-functions
    before-save-hook buffer-list-update-hook change-major-mode-hook
    completion-at-point-functions emacs-startup-hook find-file-hook
    first-change-hook kill-buffer-hook kill-buffer-query-functions
    kill-emacs-hook kill-emacs-query-functions minibuffer-exit-hook
    minibuffer-setup-hook post-command-hook post-self-insert-hook
    pre-command-hook prog-mode-hook project-find-functions text-mode-hook
    window-buffer-change-functions window-configuration-change-hook
    window-scroll-functions window-selection-change-functions
    window-size-change-functions window-state-change-hook)
  "Hooks that `contexture-ert-leftovers' looks at, and tests restore.")

(defconst contexture-ert--buffers-of-emacs
  "\\` \\*\\(?:Minibuf\\|Echo Area\\|code-\\(?:conver\\|conversion-work\\)\\|temp\
\\|load\\|autoload\\|info\\|server\\|Compiler\\|eldoc\\|jka-compr\\|work\\|string\
\\|tip\\|DOC\\|gnutls\\|xref\\|pp-display\\|extract-rectangle\\|buffer-defaults\\)"
  "Regexp for names of hidden buffers that belong to Emacs itself.")

(defun contexture-ert--snapshot ()
  "Return what is there now, for `contexture-ert--new-things'."
  (list :buffers (buffer-list)
        :processes (process-list)
        :timers (append timer-list timer-idle-list nil)
        :hooks (cl-loop for hook in contexture-ert-hooks
                        when (boundp hook)
                        collect (cons hook (copy-sequence
                                            (ensure-list (default-value hook)))))))

(defun contexture-ert--new-things (snapshot)
  "Return what is there now, but was not at SNAPSHOT.
This is a list of (KIND THING), with the kind `buffer', `process' or
`timer', and of (hook NAME FUNCTION)."
  (append
   (cl-loop for buffer in (contexture-ert--new-buffers snapshot)
            collect (list 'buffer buffer))
   (cl-loop for process in (process-list)
            unless (memq process (plist-get snapshot :processes))
            collect (list 'process process))
   (cl-loop for timer in (append timer-list timer-idle-list)
            unless (or (memq timer (plist-get snapshot :timers))
                       (contexture-ert--timer-of-emacs-p timer))
            collect (list 'timer timer))
   (cl-loop for hook in contexture-ert-hooks
            for before = (alist-get hook (plist-get snapshot :hooks))
            when (boundp hook)
            append (cl-loop for function in (ensure-list (default-value hook))
                            unless (member function before)
                            collect (list 'hook hook function)))))

(defun contexture-ert--new-buffers (snapshot)
  "Return the buffers that were not there at SNAPSHOT, without Emacs's own."
  (cl-loop for buffer in (buffer-list)
           unless (or (memq buffer (plist-get snapshot :buffers))
                      (string-match-p contexture-ert--buffers-of-emacs
                                      (buffer-name buffer)))
           collect buffer))

(defconst contexture-ert--lisp-of-emacs
  (file-name-directory (directory-file-name
                        (file-name-directory (locate-library "ert"))))
  "Folder of the Lisp files that Emacs brings.")

(defun contexture-ert--timer-of-emacs-p (timer)
  "Return non-nil if TIMER runs a function that Emacs brings.
Such timers come and go by themselves."
  (let ((function (timer--function timer)))
    (and (symbolp function)
         (not (eq function 'ignore))
         (let ((file (symbol-file function 'defun)))
           (or (null file)
               (string-prefix-p contexture-ert--lisp-of-emacs
                                (expand-file-name file)))))))

(defmacro contexture-ert-leftovers (&rest body)
  "Run BODY and return what it leaves behind.
This is a list of (KIND THING), with the kind `buffer', `process' or
`timer', and of (hook NAME FUNCTION), for the hooks in
`contexture-ert-hooks'.  Nothing is removed."
  (declare (indent 0) (debug t))
  (let ((snapshot (make-symbol "snapshot")))
    `(let ((,snapshot (contexture-ert--snapshot)))
       ,@body
       (contexture-ert--new-things ,snapshot))))

(defun contexture-ert--remove-new (snapshot)
  "Remove all that was not there at SNAPSHOT."
  (pcase-dolist (`(,kind . ,thing) (contexture-ert--new-things snapshot))
    (condition-case nil
        (pcase kind
          ('buffer (contexture-ert--kill-buffer (car thing)))
          ('process (set-process-sentinel (car thing) #'ignore)
                    (delete-process (car thing)))
          ('timer (cancel-timer (car thing)))
          ('hook (remove-hook (car thing) (cadr thing))))
      (error nil)))
  (contexture-ert--restore-hooks snapshot))

(defun contexture-ert--restore-hooks (snapshot)
  "Add what was in hooks at SNAPSHOT and is not any more."
  (pcase-dolist (`(,hook . ,before) (plist-get snapshot :hooks))
    (dolist (function before)
      (unless (member function (ensure-list (default-value hook)))
        (add-hook hook function)))))

(defun contexture-ert--kill-buffer (buffer)
  "Kill BUFFER, also if its hooks err or its base buffer was killed."
  (when (buffer-live-p buffer)
    (let ((kill-buffer-query-functions nil))
      (with-current-buffer buffer
        (set-buffer-modified-p nil)
        (condition-case nil
            (kill-buffer)
          (error
           (let ((kill-buffer-hook nil))
             (kill-local-variable 'kill-buffer-hook)
             (kill-buffer))))))))

(provide 'contexture-ert-clean)
;;; contexture-ert-clean.el ends here
