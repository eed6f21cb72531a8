;;; contexture-repl-branch.el --- Ask again, change a question, branch  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Asking the last question again, changing an earlier one, and branching
;; from an earlier turn into a new session.  All three go back to the
;; checkpoint that was taken before a question.  Later messages leave the
;; conversation and stay in the session's log.
;;
;; A checkpoint also has the items of the context.  You may ask again
;; because you have just added what was missing, so these commands keep the
;; items as they are now.

;;; Code:

(require 'contexture-repl-turn)

(declare-function contexture-repl--open "contexture-repl" (session))
(declare-function contexture-repl--fetch-items "contexture-repl" ())

(defvar-local contexture-repl--editing nil
  "Question that is being changed, or nil.")

(defvar-local contexture-repl--unanswered nil
  "Question that last went back to the prompt.")

;;;; Commands

(defun contexture-repl-retry ()
  "Ask the last question again and replace its answer."
  (interactive)
  (contexture-repl--check-idle)
  (let ((question (contexture-repl--last :user))
        (text (contexture-repl--text)))
    (cond ((and (not (string-blank-p text)) contexture-repl--unanswered
                (equal (string-trim text) contexture-repl--unanswered))
           (contexture-repl--send-text (string-trim text)))
          ((null question) (user-error "You have asked nothing yet"))
          (t (contexture-repl--ask-instead
              question (contexture-repl--message-text question))))))

(defun contexture-repl-edit ()
  "Change the question at point, by default the last one, and ask it.
The question moves to the prompt.  \\<contexture-repl-mode-map>\\[contexture-repl-send] \
there sends it and replaces
the old question and all that followed; \\[contexture-repl-cancel] leaves \
everything as it was."
  (interactive)
  (contexture-repl--check-idle)
  (let ((question (contexture-repl--question-at-point)))
    (unless (string-blank-p (contexture-repl--text))
      (contexture-repl--remember (contexture-repl--text)))
    (setq contexture-repl--editing question)
    (contexture-repl--set-text (contexture-repl--message-text question))
    (message (substitute-command-keys
              "\\[contexture-repl-send] replaces the question and what followed, \
\\[contexture-repl-cancel] leaves them"))))

(defun contexture-repl--question-at-point ()
  "Return the question at point, or the one whose answer is at point."
  (let* ((message (or (contexture-repl--message-at (point))
                      (user-error "You have asked nothing yet")))
         (older (memq message contexture-repl--messages)))
    (or (cl-find :user older :key #'contexture-repl--message-role)
        (user-error "There is no question here"))))

(defun contexture-repl-branch (&optional name)
  "Branch from the message at point, by default the last, into a new session.
At a question, the new session ends before it and has the question at
its prompt to be changed.  The new session is called NAME, which a
prefix argument asks for; its context has the items of that time."
  (interactive
   (list (and current-prefix-arg (read-string "Name of the new session: "))))
  (contexture-repl--check-idle)
  (let* ((message (or (contexture-repl--message-at (point))
                      (user-error "There is no message yet")))
         (questionp (and (eq (contexture-repl--message-role message) :user)
                         (< (point) contexture-repl--tail)))
         (name (and name (not (string-blank-p name)) (string-trim name)))
         (next (if questionp message (contexture-repl--question-after message))))
    (if (null next)
        (contexture-repl--fork name nil nil)
      (contexture-repl--find-checkpoint
       next (lambda (checkpoint)
              (let ((draft (and questionp (contexture-repl--message-text message))))
                (if checkpoint
                    (contexture-repl--fork name checkpoint draft)
                  (contexture-repl--copy name next draft))))))))

(defun contexture-repl--question-after (message)
  "Return the first question after MESSAGE, or nil."
  (cl-find :user (cdr (memq message (reverse contexture-repl--messages)))
           :key #'contexture-repl--message-role))

;;;; Checkpoints

(defun contexture-repl--find-checkpoint (question then)
  "Call THEN with the checkpoint taken just before QUESTION, or nil."
  (let ((number (contexture-repl--number (contexture-repl--message-id question))))
    (cond ((contexture-repl--message-checkpoint question)
           (funcall then (contexture-repl--message-checkpoint question)))
          ((null number) (funcall then nil))
          (t (contexture-repl--request
              'list-checkpoints (list :session (contexture-repl--session-id))
              (lambda (checkpoints)
                (funcall then
                         (plist-get
                          (cl-find (1- number) checkpoints :from-end t
                                   :key (lambda (it) (plist-get it :position)))
                          :checkpoint)))
              (lambda (_) (funcall then nil)))))))

(defun contexture-repl--go-back (checkpoint then failed)
  "Go back to CHECKPOINT, then call THEN, or FAILED with the problem.
The items of the context stay as they are."
  (let ((look (list :manager (plist-get contexture-repl--session :manager)
                    :brief t))
        (ids (lambda (items) (mapcar (lambda (it) (plist-get it :id)) items))))
    (contexture-repl--request
     'list-items look
     (lambda (before)
       (contexture-repl--roll-back
        checkpoint
        (lambda (_)
          (contexture-repl--request
           'list-items look
           (lambda (after)
             (if (equal (funcall ids before) (funcall ids after))
                 (funcall then)
               (contexture-repl--request 'undo (list :manager (plist-get look :manager))
                                         (lambda (_) (funcall then)) failed)))
           failed))
        failed))
     failed)))

(defun contexture-repl--roll-back (checkpoint then failed)
  "Roll the session back to CHECKPOINT; THEN gets the result.
FAILED gets the problem."
  (cl-incf contexture-repl--own-rollbacks)
  (contexture-repl--request
   'rollback (list :session (contexture-repl--session-id) :checkpoint checkpoint
                   :request-key (contexture--make-request-key))
   then
   (lambda (problem)
     (setq contexture-repl--own-rollbacks (max 0 (1- contexture-repl--own-rollbacks)))
     (funcall failed problem))))

(defun contexture-repl--ask-instead (question text)
  "Replace QUESTION and all that followed by asking TEXT."
  (when (equal (string-trim (contexture-repl--text)) text)
    (contexture-repl--set-text ""))
  (let* ((mine (setq contexture-repl--preparing (cons 'back text)))
         (ask (lambda ()
                (when (eq mine contexture-repl--preparing)
                  (setq contexture-repl--preparing nil)
                  (contexture-repl--ask
                   text (contexture-repl--message-origin question)))))
         (failed (lambda (problem)
                   (when (eq mine contexture-repl--preparing)
                     (setq contexture-repl--preparing nil)
                     (contexture-repl--show-problem problem)
                     (contexture-repl--give-back text)))))
    (contexture-repl--find-checkpoint
     question
     (lambda (checkpoint)
       (if checkpoint
           (contexture-repl--go-back
            checkpoint
            (lambda ()
              (when (eq mine contexture-repl--preparing)
                (contexture-repl--delete-from question))
              (funcall ask))
            failed)
         (contexture-repl--note "No checkpoint was taken before that question, \
so it and its answer stay in the conversation.")
         (funcall ask))))))

(defun contexture-repl--replace-edited (text)
  "Replace the question that is being changed by asking TEXT."
  (let ((question contexture-repl--editing))
    (setq contexture-repl--editing nil)
    (if (memq question contexture-repl--messages)
        (contexture-repl--ask-instead question text)
      (contexture-repl--ask text))))

(defun contexture-repl--withdraw (question)
  "Remove QUESTION, which was not answered, from the server's conversation.
It is at the prompt again, and would be in the conversation twice."
  (setq contexture-repl--unanswered (contexture-repl--message-text question))
  (when-let* ((checkpoint (contexture-repl--message-checkpoint question))
              ((contexture-running-p)))
    (contexture-repl--request
     'get-messages (list :session (contexture-repl--session-id) :limit 1)
     (lambda (messages)
       (let ((last (car messages)))
         (when (and (eq (plist-get last :role) :user)
                    (equal (plist-get last :content)
                           (contexture-repl--message-text question))
                    (not (contexture-repl--busy-p)))
           (contexture-repl--go-back checkpoint #'ignore #'ignore))))
     #'ignore)))

;;;; New sessions

(defun contexture-repl--fork (name checkpoint draft)
  "Open a session called NAME that branches from CHECKPOINT, with DRAFT.
All three may be nil."
  (contexture-repl--request
   'fork-session
   (contexture--plist :session (contexture-repl--session-id)
                      :checkpoint checkpoint :name name
                      :request-key (contexture--make-request-key))
   (apply-partially #'contexture-repl--show-branch contexture-repl--settings draft)))

(defun contexture-repl--show-branch (settings draft session)
  "Show SESSION, a new one, with SETTINGS, and DRAFT at the prompt."
  (let ((buffer (contexture-repl--open session)))
    (with-current-buffer buffer
      (setq contexture-repl--settings (copy-sequence settings))
      (when draft (contexture-repl--set-text draft))
      (contexture-repl--draw-header))
    (pop-to-buffer buffer)
    (contexture--message "This is session %s, which continues from there"
             (plist-get session :session))))

(defun contexture-repl--copy (name next draft)
  "Open a session called NAME with copies of the messages before NEXT.
This is for turns without a checkpoint.  DRAFT is as in
`contexture-repl--fork'."
  (let ((settings contexture-repl--settings)
        (context contexture-manager)
        (project (plist-get contexture-repl--session :project))
        (before (contexture-repl--number (contexture-repl--message-id next))))
    (contexture-repl--request
     'get-messages (list :session (contexture-repl--session-id))
     (lambda (messages)
       (contexture-repl--request
        'open-session
        (contexture--plist :name name :project project
                           (if (listp context) :managers :manager)
                           (if (listp context) (butlast context) context)
                           :request-key (contexture--make-request-key))
        (lambda (session)
          (contexture-repl--request
           'add-message
           (list :session (plist-get session :id)
                 :request-key (contexture--make-request-key)
                 :messages (contexture-repl--copies messages before))
           (lambda (_)
             (contexture-repl--show-branch settings draft session)))))))))

(defun contexture-repl--copies (messages before)
  "Return the MESSAGES with numbers below BEFORE, in a form to add."
  (cl-loop for message in messages
           for number = (string-to-number (substring (plist-get message :id) 4))
           while (or (null before) (< number before))
           collect (apply #'contexture--plist
                          (cl-loop for key in '(:role :content :timestamp :phase :pinned
                                                      :tool-calls :tool-call-id)
                                   nconc (list key (plist-get message key))))))

(provide 'contexture-repl-branch)
;;; contexture-repl-branch.el ends here
