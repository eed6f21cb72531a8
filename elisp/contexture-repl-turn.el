;;; contexture-repl-turn.el --- One question and its answer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Sends what the user wrote, has the answer drawn while it comes, and
;; ends the turn: with an answer, an error, or because it was cancelled.
;; What was asked goes back behind the prompt whenever it was not
;; answered.

;;; Code:

(require 'contexture-repl-input)
(require 'contexture-repl-stream)

(declare-function jsonrpc-notify "jsonrpc" (connection method params))
(declare-function jsonrpc-running-p "jsonrpc" (conn))

(defcustom contexture-repl-checkpoints t
  "Whether a checkpoint is taken before each question.
They are what retrying, changing and branching go back to."
  :type 'boolean
  :group 'contexture-repl)

(defcustom contexture-repl-answered-hook nil
  "Normal hook run in the buffer of a session when an answer is complete."
  :type 'hook
  :group 'contexture-repl)

;;;; Sending

(defun contexture-repl-send ()
  "Send what you wrote, or do it if it begins with `/'.
Above the prompt, go there."
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
  "Send TEXT, which was written behind the prompt."
  (contexture-repl--set-text "")
  (setq buffer-undo-list nil)
  (if (bound-and-true-p contexture-repl--editing)
      (contexture-repl--replace-edited text)
    (contexture-repl--ask text)))

(defun contexture-repl--ask (text &optional origin)
  "Ask TEXT, whose code came from ORIGIN, in the session of this buffer."
  (contexture-repl--remember text)
  (contexture-repl--show-end)
  (let ((turn (contexture-repl--make-turn
               :buffer (current-buffer) :text text
               :key (contexture--make-request-key)
               :question (contexture-repl--add-message :user text :origin origin))))
    (setq contexture-repl--turn turn)
    (contexture-repl--begin-turn turn)
    (contexture-repl--keep-draft)
    (contexture-repl--take-checkpoint turn)))

(defun contexture-repl--begin-turn (turn)
  "Listen to what the server tells of TURN."
  (push turn contexture-repl--turns)
  (contexture-repl--raise-gc-threshold)
  (add-hook 'contexture-notification-functions #'contexture-repl--progress)
  (add-hook 'contexture-connected-hook #'contexture-repl--asked-again)
  (contexture-repl--draw-header))

(defun contexture-repl--take-checkpoint (turn)
  "Have TURN go on once there is a checkpoint before it, if there is one.
That one cannot be taken is no reason not to go on."
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
  "Return what calls name the session of this buffer."
  (or (plist-get contexture-repl--session :id)
      (plist-get contexture-repl--session :session)))

(defun contexture-repl--chat (turn)
  "Ask the model what TURN, this buffer's, is about.
Do not if it was cancelled meanwhile."
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
  "Ask the model what TURN is about, in BUFFER if it is still there."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer (contexture-repl--chat turn))))

(defun contexture-repl--chat-params (text &rest more)
  "Return what to call `chat' with for TEXT in this buffer, with MORE.
What this server does not know is left out."
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

(defun contexture-repl--managing-params (text)
  "Return what to say of the managing of a turn with TEXT.
That is what the header line shows, if anything was chosen, so that
these agree; a template that TEXT names is the server's to see."
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
  "End TURN because of PROBLEM, or ask again without what was not understood."
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
         (format "This server takes no %s with a question; it is asked without."
                 (if (eq param :manage) "template" (contexture--name param)))))
      (contexture-repl--chat turn))))

(defvar contexture-repl--running nil
  "The command behind a slash that is being done, as (BUFFER . TEXT), or nil.
It is that, too, while what the command asked for is answered, so that
TEXT can go back behind the prompt of BUFFER if that fails.")

(defun contexture-repl--request (method params success &optional failure)
  "Call METHOD with PARAMS for this buffer; return the call's id.
SUCCESS gets the result and FAILURE the problem, which is shown unless
that is given, in this buffer if it is still there.  FAILURE is called
at once, and nil returned, when the call cannot even be made."
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
  "Show PROBLEM, the error of a call, below what was said.
The command that made the call goes back behind the prompt."
  (contexture-repl--note (concat "Error: " (contexture--error-text problem))
                         'contexture-repl-error)
  (when (eq (car contexture-repl--running) (current-buffer))
    (contexture-repl--give-back (cdr contexture-repl--running))))

;;;; The end

(defun contexture-repl--answered (turn result)
  "End TURN, which was answered with RESULT, once all of it is drawn."
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
    (when-let ((model (plist-get result :model)))
      (setq contexture-repl--answered-by model)
      (contexture-repl--retitle answer model))
    (contexture-repl--add-results answer (plist-get result :tool-calls)))
  (contexture-repl--note (contexture-repl--result-text result))
  (contexture-repl--keep-usage (plist-get result :id)
                               (contexture-repl--result-text result))
  (when-let ((text (contexture-repl--management-text result)))
    (contexture-repl--note text))
  (contexture-repl--fetch-stats)
  (contexture-repl--keep-draft)
  (run-hooks 'contexture-repl-answered-hook))

(declare-function contexture-repl--fetch-stats "contexture-repl" ())

(defun contexture-repl--so-far (turn)
  "Return what was drawn of TURN's answer."
  (string-join (delete "" (reverse (cons (contexture-repl--last-part turn)
                                         (contexture-repl--turn-earlier turn))))
               "\n\n"))

(defun contexture-repl--drawn-p (turn content)
  "Whether CONTENT is what was drawn of TURN's answer, or of its last part."
  (let ((squeeze (lambda (text) (replace-regexp-in-string "[ \t\n]+" "" text))))
    (or (equal content (contexture-repl--last-part turn))
        (and (contexture-repl--turn-earlier turn)
             (equal (funcall squeeze content)
                    (funcall squeeze (contexture-repl--so-far turn)))))))

(defun contexture-repl--redraw-answer (turn content)
  "Have CONTENT drawn in the place of what was drawn of TURN's answer."
  (when-let ((state (contexture-repl--turn-state turn)))
    (contexture-repl--changing
      (delete-region (contexture-repl--turn-start turn) contexture-repl--tail)))
  (setf (contexture-repl--turn-state turn) nil
        (contexture-repl--turn-pieces turn) nil
        (contexture-repl--turn-pending turn) (list (cons :text content))))

(defun contexture-repl--end-turn (turn)
  "Note that TURN has ended, and show the remarks about it."
  (setq contexture-repl--turns (delq turn contexture-repl--turns))
  (unless contexture-repl--turns
    (remove-hook 'contexture-notification-functions #'contexture-repl--progress)
    (remove-hook 'contexture-connected-hook #'contexture-repl--asked-again))
  (when-let ((timer (contexture-repl--turn-timer turn)))
    (cancel-timer timer)
    (setf (contexture-repl--turn-timer turn) nil))
  (setq contexture-repl--turn nil)
  (contexture-repl--drop-approvals)
  (contexture-repl--end-part turn)
  (mapc #'contexture-repl--note (reverse (contexture-repl--turn-notes turn)))
  (contexture-repl--draw-header))

(defun contexture-repl--cost-text (cost)
  "Return COST with four decimals, or two digits if that would show too little."
  (if (or (zerop cost) (>= cost 0.001)) (format "%.4f" cost)
    (replace-regexp-in-string
     "\\.?0+\\'" "" (format (format "%%.%df" (min 12 (1+ (- (floor (log cost 10)))))) cost))))

(defun contexture-repl--result-text (result)
  "Return words for what the answer with RESULT took, as far as that is known."
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
       (:length "; cut off at the most that the model may say: ask it to go on")
       (_ "")))))

(declare-function contexture-repl--management-text "contexture-repl-settings" (result))

(defun contexture-repl--failed (turn problem)
  "End TURN, which was not answered because of PROBLEM."
  (when (and (memq turn contexture-repl--turns)
             (not (contexture-repl--when-drawn turn #'contexture-repl--failed problem)))
    (let ((cancelled (eql (plist-get problem :code) -32800))
          (answer (contexture-repl--turn-answer turn))
          (question (contexture-repl--turn-question turn)))
      (contexture-repl--end-turn turn)
      (if answer
          (setf (contexture-repl--message-text answer) (contexture-repl--so-far turn))
        (contexture-repl--delete-from question)
        (contexture-repl--withdraw question))
      (contexture-repl--note (contexture-repl--problem-note problem cancelled answer)
                             (if cancelled 'contexture-repl-note
                               'contexture-repl-error))
      (unless (and cancelled answer)
        (contexture-repl--give-back (contexture-repl--turn-text turn)))
      (contexture-repl--fetch-stats)
      (contexture-repl--keep-draft))))

(defun contexture-repl--problem-note (problem cancelled answer)
  "Return what to show of PROBLEM, with what to do about it.
CANCELLED tells that the user wanted it, ANSWER that some of an answer
is there."
  (let ((retry (substitute-command-keys "\\[contexture-repl-retry]")))
    (cond ((and cancelled answer)
           (format "Cancelled; %s asks again." retry))
          (cancelled "Cancelled; what you asked is behind the prompt.")
          (t
           (format "Error: %s\n%s" (plist-get problem :message)
                   (contexture-repl--advice
                    (plist-get (plist-get problem :data) :kind)
                    (plist-get problem :code)))))))

(defun contexture-repl--advice (kind code)
  "Return what to do after an error of KIND with CODE."
  (let ((again "what you asked is behind the prompt, RET asks it again."))
    (pcase (and kind (contexture--name kind))
      ((or "provider-unconfigured" "unconfigured")
       (concat "No model is set up yet; M-x contexture-configure-provider does that, and \
the rest works without. When one is, " again))
      ("authentication"
       (concat "Give the provider a key that it takes; M-x contexture-configure-provider \
looks up one that you changed. Then, " again))
      ("session-busy"
       (concat "Somebody else is being answered in this session; when that is over, "
               again))
      ("rate-limited" (concat "Wait a little; " again))
      ("quota-exhausted"
       (concat "Look at the plan of the account, or choose another model with /model; "
               again))
      ("context-too-long"
       (concat "/drop items, choose a /template, or ask a model that takes more; "
               again))
      ("bad-request" (concat "/model chooses another model; " again))
      ((guard (eql code -32601))
       (concat "This server cannot talk to models; install a newer one. "
               (contexture--capitalized again)))
      (_ (contexture--capitalized again)))))

(defun contexture-repl--unanswered-text ()
  "Return what would be lost with the turn of this buffer, and what is written."
  (concat (if contexture-repl--turn (contexture-repl--turn-text contexture-repl--turn)
            (cdr contexture-repl--preparing))
          (if (string-blank-p (contexture-repl--text)) ""
            (concat "\n\n" (contexture-repl--text)))))

;;;; Cancelling

(defun contexture-repl-cancel ()
  "Stop the answer that is coming; what has come stays.
Use it again to forget about a server that does not answer.  When you
are changing an earlier question, leave that as it was."
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
           (message "Cancelling..."))
          (t (contexture--cancel (contexture-repl--turn-connection turn)
                                 (contexture-repl--turn-id turn))))))

(defun contexture-repl--send-cancel (turn)
  "Ask the server to stop TURN."
  (jsonrpc-notify (contexture-repl--turn-connection turn) 'cancel
                  (list :id (contexture-repl--turn-id turn))))

(provide 'contexture-repl-turn)
;;; contexture-repl-turn.el ends here
