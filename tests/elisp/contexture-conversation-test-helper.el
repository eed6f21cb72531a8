;;; contexture-conversation-test-helper.el --- Conversations to be tested  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Conversations to be tested, and what they show.  The server and all
;; between Emacs and the model are real; the model says what the test has
;; it say.  `contexture-conversation-test-played' is for what no server says.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-conversation)

(defmacro contexture-conversation-test-with (answers &rest body)
  "Run BODY in the buffer of the conversation \"talk\" with a model that says ANSWERS.
They are lists of pieces, as in `llm-ert-with-model'.  There is no
model if ANSWERS is nil."
  (declare (indent 1) (debug t))
  `(contexture-conversation-test--with-model ,answers
     (lambda ()
       (contexture-conversation-test-open "talk")
       ,@body)))

(defmacro contexture-conversation-test-played (chats &rest body)
  "Run BODY in the buffer of the conversation \"talk\" with a server that is played.
It answers each chat with the acts that are next in CHATS, as in
`contexture-ert-with-handler', and a real server does the rest."
  (declare (indent 1) (debug t))
  `(let ((chats ,chats))
     (contexture-test-in-directory
      (lambda ()
        (contexture-ert-with-handler
            (lambda (method _)
              (pcase method
                ('chat (pop chats))
                ('list-providers
                 '(result ((:name "play" :model "scripted" :default t))))))
          :server '(:time nil :tokenizer nil)
          (contexture-conversation-test--afresh
           (lambda ()
             (contexture-conversation-test-open "talk")
             ,@body)))))))

(defun contexture-conversation-test-keep-no-turns ()
  "Have the conversation keep no turns to go back to."
  (contexture--ask 'configure-session
                   (list :session (contexture-conversation--session-id) :versioning nil)))

(defun contexture-conversation-test-reply (content &rest more)
  "Return the act by which a played server answers a chat with CONTENT.
MORE, a property list, replaces parts of the result."
  (list 'result
        (append more
                (list :session "talk" :id "msg-2" :question "msg-1" :content content
                      :stop-reason :stop
                      :usage '(:input 1200 :output 34 :cached 1000) :cost 0.0012
                      :model "scripted" :provider "play"))))

(defun contexture-conversation-test--with-model (answers function)
  "Call FUNCTION with a server that keeps its state, whose model says ANSWERS."
  (llm-ert-with-model
      (mapcar (lambda (answer)
                (append answer '((usage :input 1200 :output 34))))
              answers)
    (contexture-test-with-args
     :state
     (lambda ()
       (let ((contexture-providers
              (and answers (list (cons "play" (contexture-conversation-test-provider))))))
         (contexture-conversation-test--afresh function))))))

(defun contexture-conversation-test-provider ()
  "Return the settings by which a server asks the model of the test."
  (list :kind 'openai :model "scripted" :default t
        :base-url (concat (llm-ert-url) "/v1")
        :price-input 0.5 :price-output 10.0))

(defun contexture-conversation-test--afresh (function)
  "Call FUNCTION with no history and no conversations."
  (let* ((contexture-conversation-history-file (concat llm-ert-directory "history"))
         (contexture-conversation--history nil)
         (contexture-conversation--new-history nil)
         (contexture-conversation--read nil)
         (contexture-conversation--turns nil)
         (contexture-conversation--unknown nil)
         (contexture-conversation--recent nil)
         (contexture-conversation--used nil)
         (kill-emacs-hook kill-emacs-hook))
    (save-window-excursion
      (funcall function))))

(defun contexture-conversation-test-open (name)
  "Open the conversation NAME, and wait until it is there; its buffer is current."
  (contexture-conversation name)
  (set-buffer (window-buffer))
  (llm-ert-wait-for (and contexture-conversation--stats
                                (or contexture-conversation--messages
                                    (string-match-p "Write a question" (buffer-string))))))

(defun contexture-conversation-test-project (name)
  "Make a project called NAME with the file a.el; return the file."
  (make-directory (concat llm-ert-directory name "/.git") t)
  (contexture-test-file (concat name "/a.el") (format "(defun %s (x)" name) "  (car x))"))

(defun contexture-conversation-test-type (text)
  "Write TEXT behind the prompt."
  (goto-char (point-max))
  (insert text))

(defun contexture-conversation-test-send (text)
  "Write TEXT, send it, and wait until the turn has ended."
  (contexture-conversation-test-type text)
  (contexture-conversation-send)
  (contexture-conversation-test-wait))

(defun contexture-conversation-test-await-request ()
  "Wait until the model wants to use a tool, and show the request in the window.
Emacs would do that itself, where it redisplays."
  (llm-ert-wait-for contexture-conversation--approvals)
  (set-window-buffer nil (current-buffer))
  (set-window-start
   nil (contexture-conversation--approval-from (car contexture-conversation--approvals))))

(defun contexture-conversation-test-read-approval ()
  "Read the request in the buffer that shows all of it, to its end."
  (with-current-buffer contexture-conversation-approval-buffer
    (while (< contexture--shown (point-max))
      (set-window-start nil contexture--shown)
      (run-hooks 'pre-command-hook))))

(defun contexture-conversation-test-wait ()
  "Wait until no turn is being answered and nothing is on its way."
  (llm-ert-wait-for (not (contexture-conversation--busy-p)))
  (contexture-test-settle)
  (contexture-test-settle))

(defun contexture-conversation-test-shown ()
  "Return what is shown above the line with the context."
  (buffer-substring-no-properties (point-min) contexture-conversation--tail))

(defun contexture-conversation-test-context ()
  "Return the line with the context."
  (string-trim (buffer-substring-no-properties
                contexture-conversation--tail
                (- contexture-conversation--input (length contexture-conversation--prompt)))))

(defun contexture-conversation-test-log ()
  "Return what is in the conversation, as the server has it."
  (mapcar (lambda (it) (list (plist-get it :role) (plist-get it :content)))
          (contexture-request 'get-messages
                              (list :session (contexture-conversation--session-id)))))

(defun contexture-conversation-test-header ()
  "Return what the header line says."
  (mapconcat #'substring-no-properties header-line-format ""))

(defun contexture-conversation-test-settled-count ()
  "Wait until the server has counted what this conversation would send now."
  (let ((entry (gethash (plist-get contexture-conversation--session :id) contexture-count--entries)))
    (llm-ert-wait-for
        (not (or (contexture-count--entry-timer entry) (contexture-count--entry-asking entry)
                 (contexture-count--entry-stale entry))))
    (contexture-test-settle)))

(defun contexture-conversation-test-last-shown ()
  "Return the last request that the model got, as text."
  (format "%s" (car (last (llm-ert-shown)))))

(defun contexture-conversation-test-goto (text)
  "Go to TEXT, the last one above the prompt."
  (goto-char contexture-conversation--tail)
  (search-backward text))

(defun contexture-conversation-test-begin (text shown)
  "Ask TEXT, and wait until SHOWN is on the screen."
  (contexture-conversation-test-type text)
  (contexture-conversation-send)
  (llm-ert-wait-for (string-search shown (contexture-conversation-test-shown))))

(provide 'contexture-conversation-test-helper)
;;; contexture-conversation-test-helper.el ends here
