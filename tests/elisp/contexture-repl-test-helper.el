;;; contexture-repl-test-helper.el --- A model that plays its part  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Two models for tests.  `contexture-repl-test-with' has the real server
;; play a script of its own (a provider of the kind `scripted'), so that
;; all between Emacs and the model is real.  `contexture-repl-test-played'
;; is for what no script can do: a server behind a socket of Emacs's own,
;; which passes every line on to a real one and answers some methods by
;; itself, so that a test can look at what was asked, and have the wire
;; say anything.
;;
;; Both take a list of answers, each a list of pieces.  For both, a string
;; is text that is streamed, and `hang' has the answer never end.  In a
;; script, (:kind :reasoning :text TEXT) is said before the text, `cut'
;; breaks the answer off, (error KIND MESSAGE) is said in place of it,
;; (when TEXT) has it answer only a question with TEXT, and (delay
;; SECONDS) waits before each piece; (call NAME ARGUMENTS) uses a tool.
;; What is played may have any plist as the parameters of another
;; `progress' notification; (error PLIST) is the answer instead; (result
;; PLIST) replaces parts of the result; and (logged-error PLIST) is an
;; error after the question was logged.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-repl)
(require 'contexture-repl-code)

(defvar contexture-repl-test-answers nil
  "What is still to be answered.")

(defvar contexture-repl-test-asked nil
  "The parameters of the chats, the newest first.")

(defvar contexture-repl-test--command nil
  "Command that starts the real server.")

(cl-defstruct (contexture-repl-test--chat (:constructor contexture-repl-test--make-chat))
  client id params pieces said)

(defun contexture-repl-test-serve (socket)
  "Listen at SOCKET, a file name."
  (make-network-process
   :name "played" :server t :family 'local :service socket
   :coding 'utf-8-unix :noquery t
   :filter #'contexture-repl-test--hear
   :sentinel (lambda (client _)
               (when-let* ((backend (process-get client 'backend)))
                 (delete-process backend)))))

(defun contexture-repl-test--lines (process chunk)
  "Return the lines that CHUNK of PROCESS completes."
  (let ((lines (split-string (concat (process-get process 'rest) chunk) "\n")))
    (process-put process 'rest (car (last lines)))
    (butlast lines)))

(defun contexture-repl-test--hear (client chunk)
  "Pass the lines of CHUNK from CLIENT on, or play a part."
  (unless (process-get client 'backend)
    (contexture-repl-test--start client))
  (dolist (line (contexture-repl-test--lines client chunk))
    (let* ((message (contexture-ert--decode line))
           (params (plist-get message :params)))
      (pcase (plist-get message :method)
        ("chat" (contexture-repl-test--play
                 (contexture-repl-test--make-chat
                  :client client :id (plist-get message :id) :params params)))
        ("list-providers"
         (contexture-ert--say
          client (list :id (plist-get message :id)
                       :result '((:name "play" :model "scripted" :default t)))))
        ((and "cancel"
              (guard (equal (plist-get params :id)
                            (when-let* ((chat (process-get client 'chat)))
                              (contexture-repl-test--chat-id chat)))))
         (contexture-repl-test--cancel (process-get client 'chat)))
        (_ (process-send-string (process-get client 'backend) (concat line "\n")))))))

(defun contexture-repl-test--start (client)
  "Start the real server for CLIENT."
  (let ((backend (make-process
                  :name "backend" :command contexture-repl-test--command
                  :connection-type 'pipe :coding 'utf-8-unix :noquery t
                  :stderr (make-pipe-process :name "backend-log" :noquery t
                                             :filter #'ignore :sentinel #'ignore)
                  :sentinel (lambda (backend _)
                              (unless (process-live-p backend)
                                (delete-process client))))))
    (process-put client 'backend backend)
    (process-put client 'calls (make-hash-table :test #'equal))
    (set-process-filter
     backend
     (lambda (backend chunk)
       (dolist (line (contexture-repl-test--lines backend chunk))
         (let* ((message (contexture-ert--decode line))
                (then (gethash (plist-get message :id) (process-get client 'calls))))
           (cond (then (funcall then (plist-get message :result)))
                 ((process-live-p client)
                  (process-send-string client (concat line "\n"))))))))))

(defun contexture-repl-test--call (client method params then)
  "Call METHOD with PARAMS of CLIENT's server; THEN gets the result."
  (let ((id (format "played-%d" (hash-table-count (process-get client 'calls)))))
    (puthash id then (process-get client 'calls))
    (contexture-ert--say (process-get client 'backend)
                         (list :id id :method method :params params))))

(defun contexture-repl-test--play (chat)
  "Answer CHAT with the next of the answers."
  (let* ((params (contexture-repl-test--chat-params chat))
         (client (contexture-repl-test--chat-client chat))
         (answer (pop contexture-repl-test-answers)))
    (push params contexture-repl-test-asked)
    (setf (contexture-repl-test--chat-pieces chat) answer)
    (cond ((null answer)
           (contexture-repl-test--refuse
            chat '( :code 1 :message "no provider is set up; name one in config.toml"
                    :data (:kind :provider-unconfigured))))
          ((plist-get params :dry-run)
           (contexture-repl-test--reply chat (car answer)))
          ((eq (car-safe (car answer)) 'error)
           (contexture-repl-test--refuse chat (cadr (car answer))))
          (t
           (process-put client 'chat chat)
           (contexture-repl-test--call
            client "add-message"
            (list :session (plist-get params :session) :role :user
                  :content (plist-get params :content)
                  :request-key (concat (plist-get params :request-key) "-question"))
            (apply-partially #'contexture-repl-test--say-pieces chat))))))

(defun contexture-repl-test--say-pieces (chat question)
  "Say the pieces of CHAT, whose QUESTION is in the log."
  (let ((pieces (contexture-repl-test--chat-pieces chat)) piece more (end 'result))
    (while pieces
      (setq piece (pop pieces))
      (pcase piece
        ((pred stringp)
         (push piece (contexture-repl-test--chat-said chat))
         (contexture-repl-test--tell chat (list :kind :text :text piece)))
        ('hang (setq end nil pieces nil))
        (`(result ,plist) (setq more plist))
        (`(logged-error ,problem)
         (setq end nil pieces nil)
         (contexture-repl-test--refuse chat problem))
        (_ (contexture-repl-test--tell chat piece))))
    (when end
      (contexture-repl-test--log-answer
       chat (lambda (answer)
              (contexture-repl-test--reply
               chat (append more
                            (list :session (plist-get question :session)
                                  :id (plist-get answer :id)
                                  :question (plist-get question :id)
                                  :content (contexture-repl-test--said chat)
                                  :stop-reason :stop
                                  :usage '(:input 1200 :output 34 :cached 1000)
                                  :cost 0.0012
                                  :model "scripted" :provider "scripted"))))))))

(defun contexture-repl-test--said (chat)
  "Return the text that was streamed in CHAT."
  (apply #'concat (reverse (contexture-repl-test--chat-said chat))))

(defun contexture-repl-test--tell (chat params)
  "Tell the client of CHAT of progress with PARAMS."
  (contexture-ert--say (contexture-repl-test--chat-client chat)
                       (list :method "progress"
                             :params (append (list :id (contexture-repl-test--chat-id chat))
                                             params))))

(defun contexture-repl-test--log-answer (chat then)
  "Log what was said in CHAT, and call THEN."
  (contexture-repl-test--call
   (contexture-repl-test--chat-client chat) "add-message"
   (list :session (plist-get (contexture-repl-test--chat-params chat) :session)
         :role :assistant :content (contexture-repl-test--said chat))
   then))

(defun contexture-repl-test--cancel (chat)
  "End CHAT as cancelling does."
  (let ((refuse (lambda (_)
                  (contexture-repl-test--refuse
                   chat '(:code -32800 :message "cancelled")))))
    (if (contexture-repl-test--chat-said chat)
        (contexture-repl-test--log-answer chat refuse)
      (funcall refuse nil))))

(defun contexture-repl-test--reply (chat result)
  "Answer CHAT with RESULT."
  (process-put (contexture-repl-test--chat-client chat) 'chat nil)
  (contexture-ert--say (contexture-repl-test--chat-client chat)
                       (list :id (contexture-repl-test--chat-id chat) :result result)))

(defun contexture-repl-test--refuse (chat problem)
  "Answer CHAT with the error PROBLEM."
  (process-put (contexture-repl-test--chat-client chat) 'chat nil)
  (contexture-ert--say (contexture-repl-test--chat-client chat)
                       (list :id (contexture-repl-test--chat-id chat) :error problem)))

;;;; A script

(defun contexture-repl-test-script (answers)
  "Write a configuration whose model says ANSWERS, or that has no model.
Return its file name.  A server that starts later says the new ones."
  (let ((script (contexture-ert-write-file
                 "play.toml" (mapconcat #'contexture-repl-test--toml answers "\n"))))
    (contexture-ert-write-file
     "config.toml"
     (if answers
         (format "[[providers]]\nname = \"play\"\nkind = \"scripted\"\n\
model = \"scripted\"\nscript = %S\nprice-input = 0.5\nprice-output = 10.0\n" script)
       ""))))

(defun contexture-repl-test--toml (answer)
  "Return ANSWER, a list of pieces, as a table of a script."
  (let ((lines '("usage = { input = 1200, output = 34 }" "[[answer]]")) texts calls)
    (dolist (piece answer)
      (pcase piece
        ((pred stringp) (push (json-encode-string piece) texts))
        ('hang (push "hang = true" lines))
        ('cut (push "cut = true" lines))
        (`(:kind :reasoning :text ,text)
         (push (concat "reasoning = " (json-encode-string text)) lines))
        (`(when ,text) (push (concat "when = " (json-encode-string text)) lines))
        (`(delay ,seconds) (push (format "delay = %s" seconds) lines))
        (`(error ,kind ,message)
         (push (format "error = %S\nmessage = %S" (contexture--name kind) message) lines))
        (`(call ,name ,arguments)
         (push (format "{ name = %S, arguments = %s }" name
                       (json-encode-string arguments))
               calls))
        (_ (error "No script can say %S" piece))))
    (when calls
      (push (format "calls = [%s]" (string-join (nreverse calls) ", ")) lines))
    (concat (string-join (reverse lines) "\n")
            (format "\ntext = [%s]\n" (string-join (nreverse texts) ", ")))))

;;;; For tests

(defmacro contexture-repl-test-with (answers &rest body)
  "Run BODY in the buffer of the session \"talk\" with a model that says ANSWERS.
The real server says them, from a script."
  (declare (indent 1) (debug t))
  `(contexture-repl-test--scripted ,answers
     (lambda ()
       (contexture-repl-test-open "talk")
       ,@body)))

(defmacro contexture-repl-test-played (answers &rest body)
  "Run BODY in the buffer of the session \"talk\" with a server that is played.
Its model says ANSWERS."
  (declare (indent 1) (debug t))
  `(contexture-repl-test--with ,answers
     (lambda ()
       (contexture-repl-test-open "talk")
       ,@body)))

(defun contexture-repl-test--afresh (function)
  "Call FUNCTION with a server that keeps its state, and with no history."
  (contexture-test-with-args
   :state
   (lambda ()
     (let* ((contexture-repl-history-file (concat contexture-test-directory "history"))
            (contexture-repl--history nil)
            (contexture-repl--new-history nil)
            (contexture-repl--read nil)
            (contexture-repl--turns nil)
            (contexture-repl--unknown nil)
            (contexture-repl--last-buffer nil)
            (kill-emacs-hook kill-emacs-hook))
       (save-window-excursion
         (funcall function))))))

(defun contexture-repl-test--scripted (answers function)
  "Call FUNCTION with a real server whose model says ANSWERS."
  (contexture-repl-test--afresh
   (lambda ()
     (setq contexture-server-args
           (append contexture-server-args
                   (list "--config" (contexture-repl-test-script answers))))
     (funcall function))))

(defun contexture-repl-test--with (answers function)
  "Call FUNCTION with a server behind a socket, and a model that says ANSWERS."
  (contexture-repl-test--afresh
   (lambda ()
     (let ((contexture-repl-test-answers answers)
           (contexture-repl-test-asked nil)
           (contexture-repl-test--command (contexture--server-command))
           (socket (concat contexture-test-directory "socket")))
       (contexture-repl-test-serve socket)
       (setq contexture--connection (contexture--new-connection (list :unix socket)))
       (funcall function)))))

(defun contexture-repl-test-open (name)
  "Open the session NAME, and wait until it is there; its buffer is current."
  (contexture-repl name)
  (set-buffer (window-buffer))
  (contexture-test-until (and contexture-repl--stats
                              (or contexture-repl--messages
                                  (string-match-p "Write a question" (buffer-string))))))

(defun contexture-repl-test-type (text)
  "Write TEXT behind the prompt."
  (goto-char (point-max))
  (insert text))

(defun contexture-repl-test-send (text)
  "Write TEXT, send it, and wait until the turn has ended."
  (contexture-repl-test-type text)
  (contexture-repl-send)
  (contexture-repl-test-wait))

(defun contexture-repl-test-wait ()
  "Wait until no turn is being answered and nothing is on its way."
  (contexture-test-until (not (contexture-repl--busy-p)))
  (contexture-test-settle)
  (contexture-test-settle))

(defun contexture-repl-test-shown ()
  "Return what is shown above the line with the context."
  (buffer-substring-no-properties (point-min) contexture-repl--tail))

(defun contexture-repl-test-context ()
  "Return the line with the context."
  (string-trim (buffer-substring-no-properties
                contexture-repl--tail
                (- contexture-repl--input (length contexture-repl--prompt)))))

(defun contexture-repl-test-log ()
  "Return what is in the conversation, as the server has it."
  (mapcar (lambda (it) (list (plist-get it :role) (plist-get it :content)))
          (contexture-request 'get-messages
                              (list :session (contexture-repl--session-id)))))

(defun contexture-repl-test-header ()
  "Return what the header line says."
  (mapconcat #'substring-no-properties header-line-format ""))

(defun contexture-repl-test-goto (text)
  "Go to TEXT, the last one above the prompt."
  (goto-char contexture-repl--tail)
  (search-backward text))

(defun contexture-repl-test-begin (text shown)
  "Ask TEXT, and wait until SHOWN is on the screen."
  (contexture-repl-test-type text)
  (contexture-repl-send)
  (contexture-test-until (string-search shown (contexture-repl-test-shown))))

(provide 'contexture-repl-test-helper)
;;; contexture-repl-test-helper.el ends here
