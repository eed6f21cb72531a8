;;; client.el --- Hold a conversation through SLIME or SLY  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Usage: emacs --batch -Q -L DIRECTORY -l client.el -f repl-script-slime PORT
;; or with -f repl-script-sly, where DIRECTORY has SLIME or SLY.  At PORT
;; is a server whose agent does as it is told: see tests/it/peers.rs.
;; Fails with the first thing that is not as it should be.

;;; Code:

(require 'cl-lib)
(require 'subr-x)

(defvar slime-repl-history-file)
(defvar sly-mrepl-history-file-name)
(defvar sly-auto-select-connection)

(defvar repl-script-client nil
  "The client at work: a plist of functions, see `repl-script-slime'.")

(defconst repl-script-inputs
  '("hello" "it's" "don't say \"can't\"" "(unbalanced" "balanced)" "a ] } > b"
    "\"open string" "back\\slash \\n \\\\" "#| comment" "# heading" "; semicolon ;; two"
    "'quote `back ,comma ,@at" "λ and 😀 and é" "tab\there" "two\nlines" "trailing space "
    "  leading" "/usr/bin/x is broken" "nil" "#<unreadable>" ":keyword" "100%s %d ~a ~%"
    "|pipes| #\\x ?\\C-a" "(format t \"~a\" 'x)" "λ")
  "What a person may type.")

;;; The client, whichever it is

(defun repl-script-do (what &rest arguments)
  "Let the client do WHAT with ARGUMENTS."
  (apply (plist-get repl-script-client what) arguments))

(defmacro repl-script-until (what condition)
  "Wait until CONDITION holds and return its value; WHAT is said if it never does."
  `(let ((deadline (+ (float-time) 60)) value)
     (while (not (setq value ,condition))
       (when (> (float-time) deadline)
         (error "Waited in vain for %s in\n%s" ,what (repl-script-text)))
       (accept-process-output nil 0.01))
     value))

(defun repl-script-text ()
  "Everything in the REPL."
  (if-let* ((buffer (repl-script-do :buffer)))
      (with-current-buffer buffer
        (buffer-substring-no-properties (point-min) (point-max)))
    ""))

(defun repl-script-prompts ()
  "How many prompts the REPL has shown."
  (let ((start 0) (count 0))
    (while (string-match "^\\(?:contexture\\|conversation-[0-9]+\\)> " (repl-script-text) start)
      (setq start (match-end 0)
            count (1+ count)))
    count))

(defun repl-script-send (text)
  "Type TEXT in the REPL and send it."
  (with-current-buffer (repl-script-do :buffer)
    (goto-char (point-max))
    (insert text)
    (repl-script-do :return)))

(defun repl-script-say (text)
  "Send TEXT and return what is said until the next prompt."
  (let ((prompts (repl-script-prompts))
        (start (length (repl-script-text))))
    (repl-script-send text)
    (repl-script-until (format "an answer to %S" text) (> (repl-script-prompts) prompts))
    (substring (repl-script-text) start)))

(defun repl-script-check (text wanted)
  "Fail unless WANTED is in what is said to TEXT."
  (let ((said (repl-script-say text)))
    (unless (string-search wanted said)
      (error "To %S was said\n%s" text said))))

(defun repl-script-eval (form)
  "What the server evaluates FORM to, or the symbol `aborted'."
  (condition-case nil
      (repl-script-do :eval form)
    (error 'aborted)))

(defun repl-script-equal (form wanted)
  "Fail unless the server evaluates FORM to WANTED."
  (let ((value (repl-script-eval form)))
    (unless (equal value wanted)
      (error "%S gives %S" form value))))

;;; The conversation

(defun repl-script-type-everything ()
  "Type awkward things and see that each has arrived as it was."
  (dolist (input repl-script-inputs)
    (repl-script-say input))
  (let ((arrived (mapcar (lambda (message) (plist-get message :content))
                         (repl-script-eval '(contexture:get-messages)))))
    (cl-loop for input in repl-script-inputs
             for got in arrived
             unless (equal (repl-script-do :sent input) got) do (error "%S arrived as %S" input got))
    (unless (= (length arrived) (length repl-script-inputs))
      (error "%d inputs arrived" (length arrived)))))

(defun repl-script-stream ()
  "See that long answers come whole and in order."
  (let ((said (repl-script-say "stream")))
    (dotimes (number 300)
      (unless (string-search (format "piece %d\n" number) said)
        (error "Piece %d is missing" number))))
  (repl-script-check "big" (make-string 100000 ?λ)))

(defun repl-script-interrupt ()
  "Interrupt a turn that would never end."
  (let ((prompts (repl-script-prompts)))
    (repl-script-send "wait")
    (repl-script-until "the turn to begin" (string-search "waiting" (repl-script-text)))
    (with-current-buffer (repl-script-do :buffer)
      (repl-script-do :interrupt))
    (repl-script-until "the end of the turn" (> (repl-script-prompts) prompts))
    (unless (string-search "aborted on interrupt" (repl-script-text))
      (error "Nothing tells of the interrupt"))
    (repl-script-check "hello" "you said 5 characters")))

(defun repl-script-approve (restart wanted)
  "Let the agent ask for approval, take RESTART, see that it means WANTED."
  (let ((prompts (repl-script-prompts)))
    (repl-script-send "ask")
    (with-current-buffer (repl-script-until "the debugger" (repl-script-do :debugger))
      (repl-script-until "the condition" (string-search "run rm" (buffer-string)))
      (repl-script-do :restart restart))
    (repl-script-until "the end of the turn" (> (repl-script-prompts) prompts))
    (repl-script-until "the debugger to close" (not (repl-script-do :debugger)))
    (unless (string-search wanted (repl-script-text))
      (error "Restart %d is not %s" restart wanted))))

(defun repl-script-answer-questions ()
  "Let the agent ask."
  (repl-script-approve 0 "decided Once")
  (repl-script-approve 1 "decided Always")
  (repl-script-approve 2 "decided Refuse")
  (cl-letf (((symbol-function 'y-or-n-p) (lambda (&rest _) t)))
    (repl-script-check "sure" "confirmed true"))
  (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
    (repl-script-check "sure" "confirmed false")))

(defun repl-script-command (file)
  "Give commands, some of them about FILE."
  (repl-script-check (concat "/add " file) "ctx-")
  (repl-script-check "/undo" "undone: add-file")
  (repl-script-check "/redo" "redone: add-file")
  (repl-script-check "/context" "1 item: File")
  (repl-script-check "/stats" "tokens:")
  (repl-script-check "/checkpoint" "chk-")
  (repl-script-check "/rollback" "commit-restored")
  (repl-script-check "/drop ctx-1" "removed: 1")
  (repl-script-check "/clear" "removed: 0")
  (repl-script-check "/explain" "no window")
  (repl-script-check "/help" "/checkpoint")
  (repl-script-check "/session" "\n* conversation-")
  (repl-script-check "/use" "the model sees the items of")
  (repl-script-check "/template" "freeform-chat")
  (repl-script-check "/tools" "no tools")
  (repl-script-check "/model some-model" "uses some-model now")
  (repl-script-check "/model" "this session uses some-model")
  (repl-script-check "hello again" "you said 11 characters")
  (repl-script-check "/retry" "you said 11 characters")
  (repl-script-check "/dance" "no command /dance"))

(defun repl-script-complete (typed wanted)
  "Complete TYPED in the REPL to WANTED."
  (with-current-buffer (repl-script-do :buffer)
    (let ((completed (repl-script-do :complete typed)))
      (unless (equal completed wanted)
        (error "%S was completed to %S" typed completed)))))

(defun repl-script-complete-at-point (typed)
  "Insert TYPED at the end, complete it, take it out and return what it became."
  (goto-char (point-max))
  (let ((start (point)))
    (insert typed)
    (completion-at-point)
    (string-trim-right (delete-and-extract-region start (point-max)))))

(defun repl-script-call-methods ()
  "Call methods from Lisp."
  (repl-script-equal '(contexture:ping) :pong)
  (repl-script-equal '(contexture:list-sets) nil)
  (repl-script-eval '(contexture:add-context
                      :content "(λ \"x\"\n)" :type :code :manager "m" :pinned t
                      :metadata '(:filename "a.lisp" :start-line 3 :end-line 4)))
  (let ((item (car (repl-script-eval '(contexture:get-context :manager "m" :types '(:code)
                                                              :limit 1)))))
    (unless (and (equal (plist-get item :content) "(λ \"x\"\n)")
                 (equal (plist-get (plist-get item :metadata) :start-line) 3))
      (error "The item is %S" item)))
  (repl-script-equal '(contexture:add-context :content 7) 'aborted)
  (repl-script-equal '(contexture:dance) 'aborted)
  (repl-script-equal '(cl-user:launch "x") 'aborted)
  (repl-script-equal "PONG" "PONG")
  (repl-script-equal '(slynk-completion:flex-completions "/checkp" '"x")
                     '((("/checkpoint" 0.63 ((0 "/checkp")) "command")) nil))
  (repl-script-equal '(swank:fuzzy-completions "/checkp" "x" :limit 300)
                     '((("/checkpoint" "0.50" ((0 "/checkp")) "--------")) nil)))

(defun repl-script-speak-agent-q ()
  "Make the calls of agent-q's package."
  (repl-script-equal '(cl:if (cl:and (cl:find-package :agent-q)
                                     (cl:fboundp 'agent-q:agent-q-send))
                             t nil)
                     t)
  (let ((id (repl-script-eval '(agent-q:agent-q-create-session :name "q"))))
    (repl-script-equal '(agent-q:agent-q-add-context "(+ 1 2)" :type :code
                                                     :metadata '(:filename "q.lisp" :start-line 1
                                                                           :end-line 1))
                       t)
    (repl-script-equal '(agent-q:agent-q-get-context-summary)
                       '(:count 1 :types (:code) :preview "1 item: Code"))
    (repl-script-equal '(agent-q:agent-q-clear-context) t)
    (repl-script-equal '(agent-q:agent-q-get-context-summary)
                       '(:count 0 :types nil :preview "No context"))
    (repl-script-equal '(agent-q:agent-q-send "hello" :include-context t)
                       "you said 5 characters\n")
    (let ((said (car (repl-script-eval '(agent-q:agent-q-get-conversation-history :limit 1)))))
      (unless (equal (plist-get said :content) "hello")
        (error "The history has %S" said)))
    (let ((row (car (repl-script-eval '(agent-q:agent-q-list-sessions)))))
      (unless (and (equal (plist-get row :id) id) (equal (plist-get row :name) "q")
                   (> (plist-get row :created-at) 2208988800))
        (error "The session is %S" row)))
    (repl-script-equal '(agent-q:agent-q-rename-session "q2") t)
    (repl-script-equal `(agent-q:agent-q-switch-session ,id) t)
    (repl-script-equal '(agent-q:agent-q-switch-session "none") nil)
    (repl-script-equal `(agent-q:agent-q-delete-session ,id) t)))

(defun repl-script-run ()
  "Hold the whole conversation at the port that the command line names."
  (let ((port (string-to-number (pop command-line-args-left)))
        (file (expand-file-name "some-file.txt" temporary-file-directory)))
    (with-temp-file file (insert "text\n"))
    (repl-script-do :connect port)
    (repl-script-until "a prompt" (> (repl-script-prompts) 0))
    (repl-script-type-everything)
    (repl-script-stream)
    (repl-script-interrupt)
    (repl-script-answer-questions)
    (repl-script-command file)
    (repl-script-complete "/checkp" "/checkpoint")
    (repl-script-complete (substring file 0 -5) file)
    (repl-script-call-methods)
    (repl-script-speak-agent-q)
    (repl-script-do :second-repl port)
    (when-let* ((directory (getenv "AGENTQ_DIR"))
                (try (plist-get repl-script-client :agent-q)))
      (funcall try directory)
      (princ "agent-q: its package works\n"))
    (repl-script-do :quit)
    (repl-script-do :connect port)
    (repl-script-until "a prompt" (> (repl-script-prompts) 0))
    (repl-script-check "again" "you said 5 characters")
    (repl-script-do :quit)
    (princ (format "REPL: %d inputs\n" (length repl-script-inputs)))))

;;; SLIME

(declare-function slime-setup "slime")
(declare-function slime-connect "slime")
(declare-function slime-connected-p "slime")
(declare-function slime-connection "slime")
(declare-function slime-disconnect "slime")
(declare-function slime-eval "slime")
(declare-function slime-interrupt "slime")
(declare-function slime-quit-lisp "slime")
(declare-function slime-select-connection "slime")
(declare-function sldb-invoke-restart "slime")
(declare-function slime-repl-send-input "slime-repl")
(declare-function slime-connection-output-buffer "slime-repl")
(defvar slime-net-processes)

(defun repl-script-buffer-of (mode)
  "A buffer in MODE."
  (cl-find mode (buffer-list)
           :key (lambda (buffer) (buffer-local-value 'major-mode buffer))))

(defun repl-script-slime-connect (port)
  "Connect to PORT and wait for the REPL."
  (slime-connect "127.0.0.1" port)
  (repl-script-until "the connection" (and (slime-connected-p) (repl-script-do :buffer))))

(defun repl-script-slime-second (port)
  "Connect to PORT a second time: both REPLs go on."
  (let ((first (slime-connection)))
    (slime-connect "127.0.0.1" port)
    (repl-script-until "the second connection" (= 2 (length slime-net-processes)))
    (repl-script-until "its REPL"
                       (and (not (eq first (slime-connection)))
                            (buffer-live-p (repl-script-do :buffer))
                            (> (repl-script-prompts) 0)))
    (repl-script-check "second" "you said 6 characters")
    (slime-quit-lisp)
    (repl-script-until "its end" (= 1 (length slime-net-processes)))
    (slime-select-connection first)
    (repl-script-check "first" "you said 5 characters")))

(defun repl-script-slime ()
  "Hold the conversation through SLIME."
  (require 'slime)
  (setq slime-repl-history-file (make-temp-name (concat temporary-file-directory "history")))
  (slime-setup '(slime-fancy))
  (setq repl-script-client
        (list :connect #'repl-script-slime-connect
              :buffer (lambda ()
                        (and (slime-connected-p) (slime-connection-output-buffer)))
              :return (lambda () (slime-repl-send-input t))
              :sent #'identity
              :complete #'repl-script-complete-at-point
              :eval #'slime-eval
              :interrupt #'slime-interrupt
              :debugger (lambda () (repl-script-buffer-of 'sldb-mode))
              :restart #'sldb-invoke-restart
              :second-repl #'repl-script-slime-second
              :quit (lambda ()
                      (slime-quit-lisp)
                      (repl-script-until "the end" (not (slime-connected-p))))))
  (repl-script-run))

;;; SLY

(declare-function sly-setup "sly")
(declare-function sly-connect "sly")
(declare-function sly-connected-p "sly")
(declare-function sly-eval "sly")
(declare-function sly-interrupt "sly")
(declare-function sly-quit-lisp "sly")
(declare-function sly-simple-completions "sly-completion")
(declare-function sly-db-invoke-restart "sly")
(declare-function sly-mrepl-new "sly-mrepl")
(declare-function sly-mrepl-return "sly-mrepl")
(declare-function sly-current-connection "sly")

(defvar repl-script-mrepl nil
  "The REPL of SLY that is spoken to; nil for any.")

(defun repl-script-sly-connect (port)
  "Connect to PORT and wait for the REPL."
  (setq repl-script-mrepl nil)
  (sly-connect "127.0.0.1" port)
  (repl-script-until "the connection" (and (sly-connected-p) (repl-script-do :buffer))))

(defun repl-script-sly-second (_port)
  "Open a second REPL in the same connection: both go on."
  (let ((first (repl-script-do :buffer)))
    (save-window-excursion
      (setq repl-script-mrepl (sly-mrepl-new (sly-current-connection) "second")))
    (repl-script-until "its prompt" (> (repl-script-prompts) 0))
    (repl-script-check "second" "you said 6 characters")
    (let ((kill-buffer-query-functions nil))
      (kill-buffer repl-script-mrepl))
    (setq repl-script-mrepl first)
    (repl-script-check "first" "you said 5 characters")))

(declare-function sly-agent-q--agent-loaded-p "sly-agent-q")
(declare-function agent-q--list-sessions-sync "sly-agent-q-sessions")
(defvar sly-agent-q--last-response)
(defvar agent-q--pending-response)
(defvar agent-q--current-session)

(defun repl-script-agent-q-says (wanted)
  "Wait until agent-q's chat shows WANTED and waits for nothing."
  (with-current-buffer "*Agent-Q Chat*"
    (repl-script-until (format "%s in agent-q's chat" wanted)
                       (and (not agent-q--pending-response)
                            (string-search wanted (buffer-string))))))

(defun repl-script-agent-q-summary (wanted)
  "Wait until agent-q's summary of the context is WANTED."
  (repl-script-until (format "the summary %s" wanted)
                     (equal wanted (plist-get (sly-eval '(agent-q:agent-q-get-context-summary))
                                              :preview))))

(defun repl-script-agent-q-type (text)
  "Type TEXT into agent-q's chat, and send it with its own key."
  (with-current-buffer "*Agent-Q Chat*"
    (goto-char (point-max))
    (insert text)
    (funcall 'agent-q-send-or-newline)))

(defmacro repl-script-agent-q-choosing (choice &rest body)
  "Run BODY; choose the candidate that contains CHOICE, and say yes."
  (declare (indent 1))
  `(cl-letf (((symbol-function 'completing-read)
              (lambda (_ candidates &rest _)
                (or (car (cl-find-if (lambda (it) (string-search ,choice (car it))) candidates))
                    (error "There is no %s among %S" ,choice candidates))))
             ((symbol-function 'yes-or-no-p) (lambda (&rest _) t)))
     ,@body))

(defun repl-script-agent-q-context ()
  "Give agent-q's commands about the context."
  (with-current-buffer (get-buffer-create "region.lisp")
    (emacs-lisp-mode)
    (insert "(defun f ()\n  1)\n")
    (funcall 'sly-agent-q-add-region-to-context (point-min) (point-max))
    (repl-script-agent-q-summary "1 item: Code")
    (funcall 'sly-agent-q-add-buffer-to-context)
    (repl-script-agent-q-summary "2 items: Code")
    (funcall 'sly-agent-q-add-defun-to-context)
    (repl-script-agent-q-summary "3 items: Code")
    (funcall 'sly-agent-q-show-context)
    (funcall 'sly-agent-q-clear-context)
    (repl-script-agent-q-summary "No context")))

(defun repl-script-agent-q-ask ()
  "Give agent-q's commands that ask the model."
  (funcall 'sly-agent-q-send "hello")
  (repl-script-agent-q-says "you said 5 characters")
  (funcall 'sly-agent-q-send-with-context "hello you")
  (repl-script-agent-q-says "you said 9 characters")
  (with-current-buffer "region.lisp"
    (dolist (command '(sly-agent-q-explain-region sly-agent-q-document-defun))
      (set-buffer "region.lisp")
      (goto-char (point-max))
      (setq agent-q--pending-response nil)
      (apply command (and (eq command 'sly-agent-q-explain-region)
                          (list (point-min) (point-max))))
      (repl-script-until "the question" (get-buffer "*Agent-Q Chat*"))
      (repl-script-agent-q-says "characters")))
  (with-temp-buffer
    (funcall 'sly-agent-q-insert-last-response)
    (unless (string-search "you said" (buffer-string))
      (error "The last answer is %S" (buffer-string))))
  (funcall 'sly-agent-q-copy-last-response)
  ;; There is no Lisp whose error could be explained, and that is said.
  (unless (string-search "connection to Contexture"
                         (condition-case problem
                             (progn (funcall 'sly-agent-q-fix-error) "")
                           (error (concat (error-message-string problem)
                                          (with-current-buffer "*Messages*"
                                            (buffer-string))))))
    (princ "agent-q: the missing Lisp was told otherwise\n")))

(defun repl-script-agent-q-cancel ()
  "Cancel a question of agent-q's chat, and ask another."
  (funcall 'agent-q-chat)
  (repl-script-agent-q-type "wait")
  (with-current-buffer "*Agent-Q Chat*"
    (unless agent-q--pending-response (error "Nothing is asked")))
  (funcall 'agent-q-cancel-request)
  (repl-script-agent-q-type "sixteen letters.")
  (repl-script-agent-q-says "you said 16 characters")
  (with-current-buffer "*Agent-Q Chat*"
    (when (string-search "waiting" (buffer-string))
      (error "The new question was answered with the old answer"))
    (funcall 'agent-q-history-previous)
    (funcall 'agent-q-history-next)
    (funcall 'agent-q-scroll-to-bottom)))

(defun repl-script-agent-q-sessions ()
  "Give agent-q's commands about sessions."
  (with-current-buffer "*Agent-Q Chat*"
    (funcall 'agent-q-name-session "named here")
    (funcall 'agent-q-new-session)
    (repl-script-agent-q-choosing "named here"
      (funcall 'agent-q-switch-session))
    (unless (equal (plist-get (sly-eval '(agent-q:agent-q-get-session-info)) :name)
                   "named here")
      (error "The session is another"))
    (repl-script-agent-q-choosing "named here"
      (funcall 'agent-q-search-sessions "sixteen"))
    (repl-script-agent-q-choosing "named here"
      (call-interactively 'agent-q-delete-session)
      (funcall 'agent-q-clear-conversation)))
  (when (member "named here" (mapcar (lambda (row) (plist-get row :name))
                                     (agent-q--list-sessions-sync)))
    (error "The session was not deleted"))
  (funcall 'sly-agent-q-new-conversation)
  (funcall 'sly-agent-q-show-conversation))

(defun repl-script-sly-agent-q (directory)
  "Let agent-q's own package, a checkout of which is DIRECTORY, do its work."
  (add-to-list 'load-path (expand-file-name "contrib/sly-agent-q" directory))
  (require 'sly-agent-q)
  (dolist (part '(sly-agent-q-chat sly-agent-q-sessions sly-agent-q-context))
    (require part nil t))
  (unless (sly-agent-q--agent-loaded-p)
    (error "Agent-q's package does not find its server"))
  (unless (plist-get (sly-eval '(agent-q:get-config-info)) :model)
    (error "The model has no name"))
  (repl-script-agent-q-context)
  (repl-script-agent-q-ask)
  (repl-script-agent-q-cancel)
  (repl-script-agent-q-sessions))

(defun repl-script-sly ()
  "Hold the conversation through SLY."
  (require 'sly-autoloads)
  (require 'sly)
  (setq sly-auto-select-connection 'always
        sly-mrepl-history-file-name (make-temp-name (concat temporary-file-directory "history")))
  (sly-setup)
  (setq repl-script-client
        (list :connect #'repl-script-sly-connect
              :buffer (lambda ()
                        (or repl-script-mrepl (repl-script-buffer-of 'sly-mrepl-mode)))
              :return (lambda () (sly-mrepl-return '(4)))
              ;; It leaves out white space at the end.
              :sent #'string-trim-right
              ;; What a key shows is a list to choose from, which batch has not.
              :complete (lambda (typed)
                          (substring-no-properties (caar (sly-simple-completions typed))))
              :eval #'sly-eval
              :interrupt #'sly-interrupt
              :debugger (lambda () (repl-script-buffer-of 'sly-db-mode))
              :restart #'sly-db-invoke-restart
              :second-repl #'repl-script-sly-second
              :agent-q #'repl-script-sly-agent-q
              :quit (lambda ()
                      (sly-quit-lisp nil)
                      (repl-script-until "the end" (not (sly-connected-p)))
                      (when-let* ((buffer (repl-script-do :buffer)))
                        (let ((kill-buffer-query-functions nil))
                          (when (buffer-live-p buffer) (kill-buffer buffer)))))))
  (repl-script-run))

(provide 'client)
;;; client.el ends here
