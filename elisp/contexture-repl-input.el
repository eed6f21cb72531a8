;;; contexture-repl-input.el --- What the user is writing  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The text behind the prompt, the history of such texts, and the file
;; that keeps that history, unsent texts, and what was chosen for each
;; session, until Emacs is started again.  Only the user may read that
;; file.  Another Emacs may write it, too, so it is read again before it
;; is written.

;;; Code:

(require 'contexture-repl-view)

(defcustom contexture-repl-history-file
  (locate-user-emacs-file "contexture-repl-history")
  "File that keeps what was said and what is not sent yet; nil keeps nothing."
  :type '(choice file (const :tag "Keep nothing" nil))
  :group 'contexture-repl)

(defcustom contexture-repl-history-length 500
  "How many texts the history keeps."
  :type 'natnum
  :group 'contexture-repl)

(defconst contexture-repl--idle-seconds 2
  "After how many seconds without a key an unsent text is kept.")

(defvar contexture-repl--history nil
  "What was said in any session, the newest first.")

(defvar contexture-repl--new-history nil
  "What was said since the file was written, the newest first.")

(defvar contexture-repl--read nil
  "Whether the history was read from its file.")

(defvar-local contexture-repl--place nil
  "Which entry of the history the user looks at, or nil.")

(defvar-local contexture-repl--unfinished nil
  "What the user was writing before looking at the history.")

(defvar-local contexture-repl--idle-timer nil
  "Timer that keeps the unsent text.")

(defvar-local contexture-repl--kept nil
  "The unsent text that was kept last.")

;;;; The text

(defun contexture-repl--text ()
  "Return what the user is writing."
  (buffer-substring-no-properties contexture-repl--input (point-max)))

(defun contexture-repl--set-text (text)
  "Put TEXT in the place of what the user is writing, with point behind it."
  (let ((inhibit-read-only t))
    (goto-char (point-max))
    (delete-region contexture-repl--input (point-max))
    (insert text)
    (dolist (window (get-buffer-window-list nil nil t))
      (set-window-point window (point))))
  (contexture-repl--show-end))

(defun contexture-repl--give-back (text)
  "Put TEXT, which could not be sent, back, before what is written since."
  (let ((since (contexture-repl--text)))
    (unless (string-prefix-p text since)
      (contexture-repl--set-text
       (if (string-blank-p since) text (concat text "\n\n" since))))))

(defun contexture-repl-newline ()
  "Begin a new line in what you are writing."
  (interactive)
  (when (< (point) contexture-repl--input) (goto-char (point-max)))
  (insert "\n"))

(defun contexture-repl--before-command ()
  "Have text that is typed or yanked above the prompt go behind it."
  (when (and (< (point) contexture-repl--input)
             (memq this-command '(self-insert-command yank yank-pop)))
    (goto-char (point-max))))

;;;; History

(defun contexture-repl--remember (text)
  "Make TEXT the newest entry of the history."
  (contexture-repl--read-file-once)
  (setq contexture-repl--history (contexture-repl--with-newest text contexture-repl--history)
        contexture-repl--new-history (cons text contexture-repl--new-history)
        contexture-repl--place nil
        contexture-repl--unfinished nil))

(defun contexture-repl--with-newest (text history)
  "Return HISTORY with TEXT at its head, and nowhere else."
  (let ((longer (cons text (delete text (copy-sequence history)))))
    (seq-take longer contexture-repl-history-length)))

(defun contexture-repl-previous-input (count)
  "Show what you said COUNT entries before, in the place of what is written.
`\\[contexture-repl-next-input]' brings that back."
  (interactive "p")
  (contexture-repl--read-file-once)
  (let ((place (+ (or contexture-repl--place -1) count)))
    (cond ((>= place (length contexture-repl--history))
           (user-error "There is nothing before that in the history"))
          ((< place -1)
           (user-error "There is nothing after that in the history")))
    (unless contexture-repl--place
      (setq contexture-repl--unfinished (contexture-repl--text)))
    (setq contexture-repl--place (and (>= place 0) place))
    (contexture-repl--set-text (if (>= place 0) (nth place contexture-repl--history)
                                 (or contexture-repl--unfinished "")))))

(defun contexture-repl-next-input (count)
  "Show what you said COUNT entries later."
  (interactive "p")
  (contexture-repl-previous-input (- count)))

(defun contexture-repl-search-input (text)
  "Choose TEXT from the history, in the place of what is written."
  (interactive
   (progn (contexture-repl--read-file-once)
          (unless contexture-repl--history
            (user-error "The history is empty"))
          (list (completing-read "Said before: " contexture-repl--history nil t))))
  (contexture-repl--set-text text))

;;;; The file

(defun contexture-repl--read-file-once ()
  "Read the history, unless that was done."
  (unless contexture-repl--read
    (setq contexture-repl--read t
          contexture-repl--history (plist-get (contexture-repl--file-contents) :history))))

(defun contexture-repl--file-contents ()
  "Return what the file keeps, a plist of :history, :drafts and :sessions.
What cannot be read counts as nothing."
  (when (and contexture-repl-history-file (file-readable-p contexture-repl-history-file))
    (condition-case nil
        (with-temp-buffer
          (let ((coding-system-for-read 'utf-8-unix) (read-circle nil))
            (insert-file-contents contexture-repl-history-file))
          (let ((contents (read (current-buffer))))
            (and (proper-list-p contents) (keywordp (car contents)) contents)))
      (error nil))))

(defun contexture-repl--save (&optional session draft settings)
  "Write the history, and for SESSION, a name, its DRAFT and SETTINGS.
A file that cannot be written is told of and does no other harm."
  (when contexture-repl-history-file
    (condition-case problem
        (contexture-repl--merge-and-write session draft settings)
      (error (contexture--message "Contexture: cannot keep the history: %s"
                      (error-message-string problem))))))

(defun contexture-repl--merge-and-write (session draft settings)
  "Do what `contexture-repl--save' says of SESSION, DRAFT and SETTINGS."
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
  "Keep nothing any more under SESSION, a name that no session has now."
  (contexture-repl--save session nil nil))

(defun contexture-repl--with-entry (key value alist)
  "Return ALIST with VALUE for KEY at its head, without KEY if VALUE is nil."
  (let ((rest (cl-remove key alist :key #'car :test #'equal)))
    (seq-take (if value (cons (cons key value) rest) rest) 200)))

(defun contexture-repl--write-file (contents)
  "Write CONTENTS to the file, which nobody else may read."
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
  "Keep what is not sent yet, and what was chosen for the session."
  (when-let ((name (plist-get contexture-repl--session :session)))
    (let ((state (list (contexture-repl--draft) contexture-repl--settings)))
      (unless (and (equal state contexture-repl--kept)
                   (null contexture-repl--new-history))
        (setq contexture-repl--kept (copy-tree state))
        (contexture-repl--save name (car state) (cadr state))))))

(defconst contexture-repl--kept-usages 50
  "Of how many answers of a session what they took is kept.")

(defun contexture-repl--keep-usage (id text)
  "Keep TEXT, which tells what the answer with ID took; the log does not."
  (when id
    (setq contexture-repl--settings
          (plist-put contexture-repl--settings :usage
                     (seq-take (cons (cons (contexture-repl--usage-key id) text)
                                     (plist-get contexture-repl--settings :usage))
                               contexture-repl--kept-usages)))))

(defun contexture-repl--usage-key (id)
  "Return what the usage of the answer with ID in this session is kept under.
A branch takes over what is kept, but has messages of its own."
  (format "%s/%s" (plist-get contexture-repl--session :id) id))

(defun contexture-repl--draw-kept-usage (id)
  "Draw what the answer with ID took, if that was kept."
  (when-let ((text (cdr (assoc (contexture-repl--usage-key id)
                               (plist-get contexture-repl--settings :usage)))))
    (contexture-repl--note text)))

(defun contexture-repl--draft ()
  "Return what would be lost if this buffer went away."
  (if (contexture-repl--busy-p)
      (contexture-repl--unanswered-text)
    (contexture-repl--text)))

(declare-function contexture-repl--unanswered-text "contexture-repl-turn" ())

(defun contexture-repl--bring-back ()
  "Insert the draft of this buffer's session, and choose what was chosen."
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
  "Have what is written kept soon, when END is behind the prompt."
  (when (and (>= end contexture-repl--input)
             (null contexture-repl--idle-timer))
    (setq contexture-repl--idle-timer
          (run-with-idle-timer contexture-repl--idle-seconds nil
                               #'contexture-repl--idle (current-buffer)))))

(defun contexture-repl--idle (buffer)
  "Keep what is written in BUFFER."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (cancel-timer contexture-repl--idle-timer)
      (setq contexture-repl--idle-timer nil)
      (contexture-repl--keep-draft))))

(provide 'contexture-repl-input)
;;; contexture-repl-input.el ends here
