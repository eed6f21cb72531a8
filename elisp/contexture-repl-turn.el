;;; contexture-repl-turn.el --- One question and its answer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Sends the text at the prompt, has the answer drawn while it comes, and
;; ends the turn with an answer, an error, or a cancellation.  A question
;; that was not answered goes back to the prompt.

;;; Code:

(require 'contexture-repl-input)
(require 'contexture-repl-stream)

(declare-function jsonrpc-notify "jsonrpc" (connection method params))
(declare-function jsonrpc-running-p "jsonrpc" (conn))

(defcustom contexture-repl-checkpoints t
  "Non-nil means take a checkpoint before each question.
Retrying, changing a question and branching go back to checkpoints."
  :type 'boolean
  :group 'contexture-repl)

(defvar contexture-repl-turn-ended-hook nil
  "Hook run in a session's buffer once a question was answered or failed.")

(defcustom contexture-repl-answered-hook nil
  "Normal hook run in the buffer of a session when an answer is complete."
  :type 'hook
  :group 'contexture-repl)

;;;; Sending

(defun contexture-repl-send ()
  "Send the text at the prompt, or run it if it begins with `/'.
Above the prompt, move point to the prompt."
  (interactive)
  (cond ((< (point) contexture-repl--input) (goto-char (point-max)))
        ((string-blank-p (contexture-repl--text))
         (user-error "Write something first"))
        ((contexture-repl--command-p (contexture-repl--text))
         (contexture-repl--run-command (contexture-repl--text)))
        (t (contexture-repl--check-idle)
           (contexture-repl--send-text (string-trim (contexture-repl--text))))))

(declare-function contexture-repl--command-p "contexture-repl-command" (text))
(declare-function contexture-repl--run-command "contexture-repl-command" (text))
(declare-function contexture-repl--replace-edited "contexture-repl-branch" (text))
(declare-function contexture-repl--withdraw "contexture-repl-branch" (question))
(defvar contexture-repl--editing)

(defun contexture-repl--check-idle ()
  "Signal an error if a turn is being answered."
  (when (contexture-repl--busy-p)
    (contexture--user-error "The last question is still being answered; %s stops that"
                (substitute-command-keys "\\[contexture-repl-cancel]"))))

(defun contexture-repl--send-text (text)
  "Send TEXT, which was written at the prompt."
  (contexture-repl--set-text "")
  (setq buffer-undo-list nil)
  (if (bound-and-true-p contexture-repl--editing)
      (contexture-repl--replace-edited text)
    (contexture-repl--ask text)))

(defun contexture-repl--ask (text &optional origin)
  "Ask TEXT, with code from ORIGIN, in the session of this buffer."
  (contexture-repl--remember text)
  (contexture-repl--show-end)
  (let ((turn (contexture-repl--make-turn
               :buffer (current-buffer) :text text
               :key (contexture--make-request-key)
               :question (contexture-repl--add-message :user text :origin origin))))
    (setq contexture-repl--turn turn)
    (contexture-repl--name-session text)
    (contexture-repl--begin-turn turn)
    (contexture-repl--keep-draft)
    (contexture-repl--take-checkpoint turn)))

(defun contexture-repl--name-session (text)
  "Name this session after TEXT, its first question, if it has only a number."
  (when (and (string-match-p "\\`conversation-[0-9]+\\'"
                             (plist-get contexture-repl--session :session))
             (null (cdr contexture-repl--messages)))
    (contexture-repl--rename (string-trim (contexture-repl--first-words text)) 1)))

(defun contexture-repl--rename (name number)
  "Give this session the NAME, with NUMBER if that is not 1.
If another session is called so, try the next number."
  (contexture-repl--request
   'rename-session
   (list :session (contexture-repl--session-id)
         :name (if (= number 1) name (format "%s (%d)" name number)))
   (lambda (session) (contexture-repl--renamed (plist-get session :session)))
   (lambda (problem)
     (when (eq (plist-get (plist-get problem :data) :kind) :session-exists)
       (contexture-repl--rename name (1+ number))))))

(defun contexture-repl--begin-turn (turn)
  "Listen to the server's notifications about TURN."
  (push turn contexture-repl--turns)
  (contexture-repl--raise-gc-threshold)
  (add-hook 'contexture-notification-functions #'contexture-repl--progress)
  (add-hook 'contexture-connected-hook #'contexture-repl--asked-again)
  (contexture-repl--draw-header))

(defun contexture-repl--take-checkpoint (turn)
  "Take a checkpoint before TURN, then go on.
Go on even if no checkpoint can be taken."
  (if (not contexture-repl-checkpoints)
      (contexture-repl--chat turn)
    (contexture-repl--request
     'checkpoint
     (list :session (contexture-repl--session-id)
           :message (concat "Before: " (contexture-repl--first-words
                                        (contexture-repl--turn-text turn)))
           :request-key (concat (contexture-repl--turn-key turn) "-before"))
     (lambda (result)
       (setf (contexture-repl--message-checkpoint
              (contexture-repl--turn-question turn))
             (plist-get result :checkpoint))
       (contexture-repl--chat turn))
     (lambda (_) (contexture-repl--chat turn)))))

(defun contexture-repl--first-words (text)
  "Return the beginning of TEXT, on one line."
  (truncate-string-to-width (replace-regexp-in-string "[ \t\n]+" " " text)
                            50 nil nil "..."))

(defun contexture-repl--session-id ()
  "Return the parameter that names the session of this buffer."
  (or (plist-get contexture-repl--session :id)
      (plist-get contexture-repl--session :session)))

(defun contexture-repl--chat (turn)
  "Ask the model the question of TURN, this buffer's.
Do nothing if it was cancelled meanwhile."
  (cond ((not (memq turn contexture-repl--turns)))
        ((contexture-repl--turn-asked turn)
         (contexture-repl--failed turn '(:code -32800 :message "cancelled")))
        ((bound-and-true-p contexture-provider--pending)
         (contexture-provider--when-ready
          (apply-partially #'contexture-repl--chat-in (current-buffer) turn)))
        (t
         (setf (contexture-repl--turn-id turn)
               (contexture-repl--request
                'chat
                (contexture-repl--chat-params
                 (contexture-repl--turn-text turn)
                 :request-key (contexture-repl--turn-key turn))
                (apply-partially #'contexture-repl--answered turn)
                (apply-partially #'contexture-repl--refused turn))
               (contexture-repl--turn-connection turn) contexture--connection))))

(declare-function contexture-provider--when-ready "contexture-provider" (function))

(defun contexture-repl--chat-in (buffer turn)
  "Ask the model the question of TURN, in BUFFER if it is still there."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer (contexture-repl--chat turn))))

(defun contexture-repl--chat-params (text &rest more)
  "Return the parameters of `chat' for TEXT in this buffer, with MORE.
Leave out parameters that the server does not know."
  (let ((settings contexture-repl--settings))
    (cl-loop for (key value) on
             (append (contexture--plist
                      :session (contexture-repl--session-id)
                      :content text
                      :phase (plist-get settings :phase)
                      :model (plist-get settings :model)
                      :provider (plist-get settings :provider))
                     (contexture-repl--managing-params text)
                     more)
             by #'cddr
             unless (memq key contexture-repl--unknown) nconc (list key value))))

(defun contexture-repl--count-params ()
  "Return the parameters for counting what this buffer would send now.
A command at the prompt would not be sent."
  (let ((text (string-trim (contexture-repl--text)))
        (settings contexture-repl--settings))
    (contexture--plist :session (contexture-repl--session-id)
                       :content (unless (or (string-empty-p text)
                                            (string-prefix-p "/" text))
                                  text)
                       :phase (plist-get settings :phase)
                       :model (plist-get settings :model)
                       :provider (plist-get settings :provider))))

(defun contexture-repl--managing-params (text)
  "Return the parameters about notes for a turn with TEXT.
These are the choices in the header line, if there are any.  A template
that TEXT names is left to the server."
  (let ((settings contexture-repl--settings))
    (when (and (plist-member settings :manage)
               (not (contexture-repl--directive-p text)))
      (if (plist-get settings :manage)
          (append '(:manage t)
                  (contexture--plist :template (plist-get settings :template)))
        '(:manage nil)))))

(declare-function contexture-repl--directive-p "contexture-repl-settings" (text))

(defvar contexture-repl--unknown nil
  "Parameters of `chat' that the server does not know.")

(defun contexture-repl--refused (turn problem)
  "End TURN because of PROBLEM, or ask again without an unknown parameter."
  (let ((param (plist-get (plist-get problem :data) :param)))
    (if (not (and (eql (plist-get problem :code) -32602)
                  (memq turn contexture-repl--turns)
                  (memq param '(:request-key :model :provider :template :manage :phase))
                  (not (memq param contexture-repl--unknown))))
        (contexture-repl--failed turn problem)
      (push param contexture-repl--unknown)
      (unless (or (memq param '(:request-key :template))
                  (and (eq param :manage)
                       (not (plist-get contexture-repl--settings :manage))))
        (contexture-repl--note
         (format "This server does not know the parameter %s; the question is sent without it."
                 (if (eq param :manage) "template" (contexture--name param)))))
      (contexture-repl--chat turn))))

(defvar contexture-repl--running nil
  "The slash command that is running, as (BUFFER . TEXT), or nil.
It stays set while the command's calls are answered, so that TEXT can go
back to the prompt of BUFFER if one fails.")

(defun contexture-repl--request (method params success &optional failure)
  "Call METHOD with PARAMS for this buffer; return the call's id.
SUCCESS gets the result and FAILURE the problem, in this buffer if it is
still there.  Without FAILURE, the problem is shown.  If the call cannot
even be made, call FAILURE at once and return nil."
  (let* ((buffer (current-buffer))
         (running contexture-repl--running)
         (failure (or failure #'contexture-repl--show-problem))
         (inside (lambda (function argument)
                   (when (buffer-live-p buffer)
                     (with-current-buffer buffer
                       (let ((contexture-repl--running running))
                         (funcall function argument)))))))
    (condition-case problem
        (contexture-request-async method params
                                  :success (apply-partially inside success)
                                  :error (apply-partially inside failure))
      ((user-error contexture-error)
       (funcall failure (list :message (contexture--problem-text problem)))
       nil))))

(defun contexture-repl--show-problem (problem)
  "Show PROBLEM, the error of a call, below the conversation.
The command that made the call goes back to the prompt."
  (contexture-repl--note (concat "Error: " (contexture--error-text problem))
                         'contexture-repl-error)
  (when (eq (car contexture-repl--running) (current-buffer))
    (contexture-repl--give-back (cdr contexture-repl--running))))

;;;; The end

(defun contexture-repl--answered (turn result)
  "End TURN once its whole answer, RESULT, is drawn."
  (let ((content (or (plist-get result :content) "")))
    (unless (contexture-repl--when-drawn turn #'contexture-repl--answered result)
      (contexture-repl--begin-answer turn)
      (if (contexture-repl--drawn-p turn content)
          (contexture-repl--finish turn result content)
        (contexture-repl--redraw-answer turn content)
        (contexture-repl--answered turn result)))))

(defun contexture-repl--finish (turn result content)
  "End TURN, which was answered with RESULT and has drawn CONTENT."
  (contexture-repl--end-turn turn)
  (setf (contexture-repl--message-id (contexture-repl--turn-question turn))
        (plist-get result :question))
  (contexture-repl--note-length (plist-get result :id))
  (let ((answer (contexture-repl--turn-answer turn)))
    (setf (contexture-repl--message-id answer) (plist-get result :id)
          (contexture-repl--message-text answer) content
          (contexture-repl--message-origin answer)
          (contexture-repl--message-origin (contexture-repl--turn-question turn)))
    (when-let* ((model (plist-get result :model)))
      (setq contexture-repl--answered-by model)
      (contexture-repl--retitle answer model))
    (contexture-repl--add-results answer (plist-get result :tool-calls)))
  (contexture-repl--note (contexture-repl--result-text result))
  (contexture-repl--keep-usage (plist-get result :id)
                               (contexture-repl--result-text result))
  (when-let* ((text (contexture-repl--management-text result)))
    (contexture-repl--note text))
  (contexture-repl--fetch-stats t)
  (contexture-repl--keep-draft)
  (contexture-repl--tell-watch turn 'done content)
  (run-hooks 'contexture-repl-answered-hook))

(declare-function contexture-repl--renamed "contexture-repl" (name))
(declare-function contexture-repl--fetch-stats "contexture-repl" (&optional after-turn))

(defun contexture-repl--so-far (turn)
  "Return the drawn text of TURN's answer."
  (string-join (delete "" (reverse (cons (contexture-repl--last-part turn)
                                         (contexture-repl--turn-earlier turn))))
               "\n\n"))

(defun contexture-repl--drawn-p (turn content)
  "Return non-nil if CONTENT is the drawn text of TURN's answer or its last part."
  (let ((squeeze (lambda (text) (replace-regexp-in-string "[ \t\n]+" "" text))))
    (or (equal content (contexture-repl--last-part turn))
        (and (contexture-repl--turn-earlier turn)
             (equal (funcall squeeze content)
                    (funcall squeeze (contexture-repl--so-far turn)))))))

(defun contexture-repl--redraw-answer (turn content)
  "Remove the unfinished part of TURN's answer, and queue CONTENT to be drawn."
  (when-let* ((state (contexture-repl--turn-state turn)))
    (contexture-repl--changing
      (delete-region (contexture-repl--turn-start turn) contexture-repl--tail)))
  (setf (contexture-repl--turn-state turn) nil
        (contexture-repl--turn-pieces turn) nil
        (contexture-repl--turn-pending turn) (list (cons :text content))))

(defun contexture-repl--end-turn (turn)
  "Record that TURN has ended, and show the remarks about it."
  (setq contexture-repl--turns (delq turn contexture-repl--turns))
  (unless contexture-repl--turns
    (remove-hook 'contexture-notification-functions #'contexture-repl--progress)
    (remove-hook 'contexture-connected-hook #'contexture-repl--asked-again))
  (when-let* ((timer (contexture-repl--turn-timer turn)))
    (cancel-timer timer)
    (setf (contexture-repl--turn-timer turn) nil))
  (setq contexture-repl--turn nil)
  (contexture-repl--drop-approvals)
  (contexture-repl--end-part turn)
  (mapc #'contexture-repl--note (reverse (contexture-repl--turn-notes turn)))
  (contexture-repl--draw-header)
  (run-hooks 'contexture-repl-turn-ended-hook))

(defun contexture-repl--cost-text (cost)
  "Return COST as text with four decimals, or two digits if it is tiny."
  (if (or (zerop cost) (>= cost 0.001)) (format "%.4f" cost)
    (replace-regexp-in-string
     "\\.?0+\\'" "" (format (format "%%.%df" (min 12 (1+ (- (floor (log cost 10)))))) cost))))

(defun contexture-repl--result-text (result)
  "Return a phrase for the usage of the answer with RESULT, as far as known."
  (let* ((usage (plist-get result :usage))
         (cached (plist-get usage :cached))
         (cost (plist-get result :cost)))
    (concat
     (or (plist-get result :model) "model")
     (if (and (plist-get usage :input) (plist-get usage :output))
         (format ": %d tokens in%s, %d out" (plist-get usage :input)
                 (if (and cached (> cached 0)) (format " (%d cached)" cached) "")
                 (plist-get usage :output))
       "")
     (if cost (concat ", cost " (contexture-repl--cost-text cost)) "")
     (pcase (plist-get result :stop-reason)
       (:length "; cut off at the maximum length of an answer: ask the model to go on")
       (_ "")))))

(defconst contexture-repl--cancelling "Cancelling..."
  "Message while the server is stopping an answer.")

(declare-function contexture-repl--management-text "contexture-repl-settings" (result))

(defun contexture-repl--failed (turn problem)
  "End TURN, which was not answered because of PROBLEM."
  (when (and (memq turn contexture-repl--turns)
             (not (contexture-repl--when-drawn turn #'contexture-repl--failed problem)))
    (let ((cancelled (eql (plist-get problem :code) -32800))
          (answer (contexture-repl--turn-answer turn))
          (question (contexture-repl--turn-question turn)))
      (contexture-repl--end-turn turn)
      (when (and cancelled (equal (current-message) contexture-repl--cancelling))
        (message nil))
      (if answer
          (setf (contexture-repl--message-text answer) (contexture-repl--so-far turn))
        (contexture-repl--delete-from question)
        (contexture-repl--withdraw question))
      (contexture-repl--note (contexture-repl--problem-note problem cancelled answer)
                             (if cancelled 'contexture-repl-note
                               'contexture-repl-error))
      (unless (or (and cancelled answer) (contexture-repl--watcher turn))
        (contexture-repl--give-back (contexture-repl--turn-text turn)))
      (contexture-repl--fetch-stats t)
      (contexture-repl--keep-draft)
      (contexture-repl--tell-watch turn 'failed))))

(defun contexture-repl--problem-note (problem cancelled answer)
  "Return the message for PROBLEM, with advice.
CANCELLED is non-nil if the user cancelled, ANSWER if part of an answer
is there."
  (let ((retry (substitute-command-keys "\\[contexture-repl-retry]")))
    (cond ((and cancelled answer)
           (format "Cancelled; %s asks again." retry))
          (cancelled "Cancelled; your question is back at the prompt.")
          (t
           (format "Error: %s\n%s" (plist-get problem :message)
                   (contexture-repl--advice
                    (plist-get (plist-get problem :data) :kind)
                    (plist-get problem :code)))))))

(defun contexture-repl--advice (kind code)
  "Return advice for an error of KIND with CODE."
  (let ((again "RET asks the question at the prompt again."))
    (pcase (and kind (contexture--name kind))
      ((or "provider-unconfigured" "unconfigured")
       (concat "No model is set up yet; set one up with M-x contexture-configure-provider \
(everything else works without one). Then, " again))
      ("authentication"
       (concat "The provider needs a valid key; after you change it, \
M-x contexture-configure-provider looks it up again. Then, " again))
      ("session-busy"
       (concat "Another client is being answered in this session; when that is over, "
               again))
      ("rate-limited" (concat "Wait a little; " again))
      ("quota-exhausted"
       (concat "Check the plan of your account, or choose another model with /model; "
               again))
      ("context-too-long"
       (concat "/drop items, choose a /template, or choose a /model with a larger window; "
               again))
      ("bad-request" (concat "/model chooses another model; " again))
      ((guard (eql code -32601))
       (concat "This server cannot talk to models; install a newer one. "
               (contexture--capitalized again)))
      (_ (contexture--capitalized again)))))

(defun contexture-repl--unanswered-text ()
  "Return the unsaved text of this buffer: question and draft."
  (concat (if contexture-repl--turn (contexture-repl--turn-text contexture-repl--turn)
            (cdr contexture-repl--preparing))
          (if (string-blank-p (contexture-repl--text)) ""
            (concat "\n\n" (contexture-repl--text)))))

;;;; Cancelling

(defun contexture-repl-cancel ()
  "Stop the answer that is coming in; keep what has come.
Use it again to give up on a server that does not answer.  While you are
changing an earlier question, this leaves that question as it was."
  (interactive)
  (let ((turn contexture-repl--turn))
    (cond ((bound-and-true-p contexture-repl--editing)
           (setq contexture-repl--editing nil)
           (contexture-repl--set-text "")
           (message "The question stays as it was"))
          (contexture-repl--preparing
           (contexture-repl--give-back (cdr contexture-repl--preparing))
           (setq contexture-repl--preparing nil))
          ((null turn) (user-error "Nothing is being answered"))
          ((null (contexture-repl--turn-id turn)) ; before the call is made
           (if (contexture-repl--turn-asked turn)
               (contexture-repl--failed turn '(:code -32800 :message "cancelled"))
             (setf (contexture-repl--turn-asked turn) t)))
          ((and (not (contexture-repl--turn-asked turn))
                (jsonrpc-running-p (contexture-repl--turn-connection turn)))
           (setf (contexture-repl--turn-asked turn) t)
           (contexture-repl--send-cancel turn)
           (message contexture-repl--cancelling))
          (t (contexture--cancel (contexture-repl--turn-connection turn)
                                 (contexture-repl--turn-id turn))))))

(defun contexture-repl--send-cancel (turn)
  "Ask the server to stop TURN."
  (jsonrpc-notify (contexture-repl--turn-connection turn) 'cancel
                  (list :id (contexture-repl--turn-id turn))))

(provide 'contexture-repl-turn)
;;; contexture-repl-turn.el ends here
