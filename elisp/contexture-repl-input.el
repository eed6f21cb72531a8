;;; contexture-repl-input.el --- What the user is writing  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The text at the prompt, the history of such texts, and the file that
;; keeps the history, drafts and choices of each session between sessions
;; of Emacs.  Only the user can read that file.  Another Emacs may write it
;; too, so it is read again before it is written.

;;; Code:

(require 'contexture-repl-view)

(defcustom contexture-repl-history-file
  (locate-user-emacs-file "contexture-repl-history")
  "File that keeps the input history, and drafts and choices of sessions.
Nil means keep nothing."
  :type '(choice file (const :tag "Keep nothing" nil))
  :group 'contexture-repl)

(defcustom contexture-repl-history-length 500
  "Maximum number of texts in the input history; the oldest are dropped."
  :type 'natnum
  :group 'contexture-repl)

(defconst contexture-repl--idle-seconds 2
  "Number of idle seconds after which an unsent text is saved.")

(defvar contexture-repl--history nil
  "Texts sent in any session, the newest first.")

(defvar contexture-repl--new-history nil
  "Texts sent since the file was written, the newest first.")

(defvar contexture-repl--read nil
  "Non-nil if the history was read from its file.")

(defvar-local contexture-repl--place nil
  "Index of the history entry that is shown, or nil.")

(defvar-local contexture-repl--unfinished nil
  "Draft that the user was writing before looking at the history.")

(defvar-local contexture-repl--idle-timer nil
  "Timer that saves the unsent text.")

(defvar-local contexture-repl--kept nil
  "List of the draft and the settings that were saved last.")

;;;; The text

(defun contexture-repl--text ()
  "Return the text at the prompt."
  (buffer-substring-no-properties contexture-repl--input (point-max)))

(defun contexture-repl--set-text (text)
  "Replace the text at the prompt with TEXT, and move point after it."
  (let ((inhibit-read-only t))
    (goto-char (point-max))
    (delete-region contexture-repl--input (point-max))
    (insert text)
    (dolist (window (get-buffer-window-list nil nil t))
      (set-window-point window (point))))
  (contexture-repl--show-end))

(defun contexture-repl--give-back (text)
  "Put TEXT, which could not be sent, back at the prompt, before newer text."
  (let ((since (contexture-repl--text)))
    (unless (string-prefix-p text since)
      (contexture-repl--set-text
       (if (string-blank-p since) text (concat text "\n\n" since))))))

(defun contexture-repl-newline ()
  "Begin a new line in the text at the prompt."
  (interactive)
  (when (< (point) contexture-repl--input) (goto-char (point-max)))
  (insert "\n"))

(defun contexture-repl--before-command ()
  "Move text that is typed or yanked above the prompt to the prompt."
  (when (and (< (point) contexture-repl--input)
             (memq this-command '(self-insert-command yank yank-pop)))
    (goto-char (point-max))))

;;;; History

(defun contexture-repl--remember (text)
  "Add TEXT to the history as its newest entry."
  (contexture-repl--read-file-once)
  (setq contexture-repl--history (contexture-repl--with-newest text contexture-repl--history)
        contexture-repl--new-history (cons text contexture-repl--new-history)
        contexture-repl--place nil
        contexture-repl--unfinished nil))

(defun contexture-repl--with-newest (text history)
  "Return HISTORY with TEXT at its head and without other copies of it."
  (let ((longer (cons text (delete text (copy-sequence history)))))
    (seq-take longer contexture-repl-history-length)))

(defun contexture-repl-previous-input (count)
  "Replace the text at the prompt with the input COUNT entries back.
`\\[contexture-repl-next-input]' brings your text back."
  (interactive "p")
  (contexture-repl--read-file-once)
  (let ((place (+ (or contexture-repl--place -1) count)))
    (cond ((>= place (length contexture-repl--history))
           (user-error "This is the oldest entry of the history"))
          ((< place -1)
           (user-error "This is the newest entry of the history")))
    (unless contexture-repl--place
      (setq contexture-repl--unfinished (contexture-repl--text)))
    (setq contexture-repl--place (and (>= place 0) place))
    (contexture-repl--set-text (if (>= place 0) (nth place contexture-repl--history)
                                 (or contexture-repl--unfinished "")))))

(defun contexture-repl-next-input (count)
  "Show the input COUNT entries later."
  (interactive "p")
  (contexture-repl-previous-input (- count)))

(defun contexture-repl-search-input (text)
  "Choose TEXT from the history, and replace the text at the prompt."
  (interactive
   (progn (contexture-repl--read-file-once)
          (unless contexture-repl--history
            (user-error "The history is empty"))
          (list (completing-read "Earlier input: " contexture-repl--history nil t))))
  (contexture-repl--set-text text))

;;;; The file

(defun contexture-repl--read-file-once ()
  "Read the history, unless it has been read."
  (unless contexture-repl--read
    (setq contexture-repl--read t
          contexture-repl--history (plist-get (contexture-repl--file-contents) :history))))

(defun contexture-repl--file-contents ()
  "Return the contents of the file, a plist of :history, :drafts and :sessions.
What cannot be read counts as empty."
  (when (and contexture-repl-history-file (file-readable-p contexture-repl-history-file))
    (condition-case nil
        (with-temp-buffer
          (let ((coding-system-for-read 'utf-8-unix) (read-circle nil))
            (insert-file-contents contexture-repl-history-file))
          (let ((contents (read (current-buffer))))
            (and (proper-list-p contents) (keywordp (car contents)) contents)))
      (error nil))))

(defun contexture-repl--save (&optional session draft settings)
  "Write the history and the DRAFT and SETTINGS of SESSION, a name.
If the file cannot be written, only tell the user."
  (when contexture-repl-history-file
    (condition-case problem
        (contexture-repl--merge-and-write session draft settings)
      (error (contexture--message "Contexture: cannot save the history: %s"
                      (error-message-string problem))))))

(defun contexture-repl--merge-and-write (session draft settings)
  "Write SESSION, DRAFT and SETTINGS, as `contexture-repl--save' says."
  (let* ((contents (contexture-repl--file-contents))
         (history (plist-get contents :history))
         (drafts (plist-get contents :drafts))
         (sessions (plist-get contents :sessions)))
    (dolist (text (reverse contexture-repl--new-history))
      (setq history (contexture-repl--with-newest text history)))
    (when session
      (setq drafts (contexture-repl--with-entry
                    session (and draft (not (string-blank-p draft)) draft) drafts)
            sessions (contexture-repl--with-entry session settings sessions)))
    (contexture-repl--write-file
     (list :history history :drafts drafts :sessions sessions))
    (setq contexture-repl--new-history nil)))

(defun contexture-repl--forget-kept (session)
  "Delete the saved data of SESSION, a name that is no longer used."
  (contexture-repl--save session nil nil))

(defun contexture-repl--with-entry (key value alist)
  "Return ALIST with VALUE for KEY at its head, without KEY if VALUE is nil."
  (let ((rest (cl-remove key alist :key #'car :test #'equal)))
    (seq-take (if value (cons (cons key value) rest) rest) 200)))

(defun contexture-repl--write-file (contents)
  "Write CONTENTS to the file, readable by the user only."
  (let* ((file (expand-file-name contexture-repl-history-file))
         (new (make-temp-file (concat file "."))) ; with mode 0600
         (coding-system-for-write 'utf-8-unix)
         (print-length nil) (print-level nil)
         (write-region-inhibit-fsync t))
    (condition-case problem
        (progn
          (write-region (prin1-to-string contents) nil new nil 'quiet)
          (rename-file new file t))
      (error (ignore-errors (delete-file new))
             (signal (car problem) (cdr problem))))))

;;;; What is not sent

(defun contexture-repl--keep-draft ()
  "Save the draft and the settings of this session."
  (when-let* ((name (plist-get contexture-repl--session :session)))
    (let ((state (list (contexture-repl--draft) contexture-repl--settings)))
      (unless (and (equal state contexture-repl--kept)
                   (null contexture-repl--new-history))
        (setq contexture-repl--kept (copy-tree state))
        (contexture-repl--save name (car state) (cadr state))))))

(defconst contexture-repl--kept-usages 50
  "Maximum number of a session's answers whose usage is saved.")

(defun contexture-repl--keep-usage (id text)
  "Save TEXT, the usage of the answer with ID; the log does not have it."
  (when id
    (setq contexture-repl--settings
          (plist-put contexture-repl--settings :usage
                     (seq-take (cons (cons (contexture-repl--usage-key id) text)
                                     (plist-get contexture-repl--settings :usage))
                               contexture-repl--kept-usages)))))

(defun contexture-repl--usage-key (id)
  "Return the key of the usage of the answer with ID in this session.
A branch inherits saved usage, but has its own messages."
  (format "%s/%s" (plist-get contexture-repl--session :id) id))

(defun contexture-repl--draw-kept-usage (id)
  "Draw the usage of the answer with ID, if it was saved."
  (when-let* ((text (cdr (assoc (contexture-repl--usage-key id)
                                (plist-get contexture-repl--settings :usage)))))
    (contexture-repl--note text)))

(defun contexture-repl--draft ()
  "Return the text that would be lost if this buffer were killed."
  (if (contexture-repl--busy-p)
      (contexture-repl--unanswered-text)
    (contexture-repl--text)))

(declare-function contexture-repl--unanswered-text "contexture-repl-turn" ())

(defun contexture-repl--bring-back ()
  "Restore the draft and the settings of this buffer's session."
  (let* ((name (plist-get contexture-repl--session :session))
         (contents (contexture-repl--file-contents))
         (draft (cdr (assoc name (plist-get contents :drafts)))))
    (setq contexture-repl--settings
          (copy-sequence (cdr (assoc name (plist-get contents :sessions)))))
    (when (and draft (string-empty-p (contexture-repl--text)))
      (contexture-repl--set-text draft))
    (setq contexture-repl--kept
          (copy-tree (list (contexture-repl--text) contexture-repl--settings)))))

(defun contexture-repl--text-changed (_beg end _length)
  "Save the draft soon if END, the end of a change, is at the prompt.
What would be sent is counted again, too."
  (when (>= end contexture-repl--input)
    (contexture-count--changed (plist-get contexture-repl--session :id) t))
  (when (and (>= end contexture-repl--input)
             (null contexture-repl--idle-timer))
    (setq contexture-repl--idle-timer
          (run-with-idle-timer contexture-repl--idle-seconds nil
                               #'contexture-repl--idle (current-buffer)))))

(defun contexture-repl--idle (buffer)
  "Save the draft of BUFFER."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (cancel-timer contexture-repl--idle-timer)
      (setq contexture-repl--idle-timer nil)
      (contexture-repl--keep-draft))))

(provide 'contexture-repl-input)
;;; contexture-repl-input.el ends here
