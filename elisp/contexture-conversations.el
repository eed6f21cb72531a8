;;; contexture-conversations.el --- Conversations  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A conversation with a model is a log of messages, and a choice of those
;; that are in view of the model.  The server keeps it, and calls it a session.
;; One conversation is the current one; commands act on it, except in a buffer
;; that shows another.
;;
;; Here conversations are opened, named, read, searched, exported, imported,
;; changed and deleted.  Nothing is lost: you can bring back whatever you
;; delete, prune or roll back, and the message says how.

;;; Code:

(require 'project)
(require 'tabulated-list)
(require 'contexture-generated)
(require 'contexture-list)
(eval-when-compile (require 'subr-x))

(declare-function contexture-conversation--buffer "contexture-conversation" (&optional session))
(declare-function contexture-conversation--message-from "contexture-conversation-view" t t)
(declare-function contexture-conversation--message-id "contexture-conversation-view" t t)
(declare-function contexture-conversation--number "contexture-conversation-view" (id))
(declare-function contexture-conversation-branch "contexture-conversation-turn" (&optional name))
(defvar contexture-conversation--loaded)
(defvar contexture-conversation--messages)
(defvar contexture-conversation--once-loaded)
(defvar contexture-conversation--session)

;;; Open and name conversations

(defgroup contexture-conversations nil
  "Conversations with a model."
  :group 'contexture
  :prefix "contexture-conversations-")

(defface contexture-conversation-warning '((t :inherit warning))
  "Face of the warning that a conversation fills most of its model's window."
  :group 'contexture-conversations)

(defvar contexture-conversation-names-history nil
  "Minibuffer history of names of conversations.")

(defvar-local contexture-conversations--shown nil
  "Id of the conversation that this buffer shows; nil means the current one.")

(defun contexture-conversations--here ()
  "Return the id of the conversation that this buffer shows, or nil.
Nil means the current conversation."
  (or contexture-conversations--shown
      (plist-get (bound-and-true-p contexture-conversation--session) :id)))

(defconst contexture-conversations--topics
  '(session-changed context-pruned context-summarized checkpoint-created)
  "Topics of notifications about conversations.")

;;;; Phrases

(defun contexture-conversations--size (session)
  "Return a phrase for the messages and tokens of SESSION.
SESSION is the server's entry for a conversation."
  (format "%s, %s"
          (contexture-conversations--many (plist-get session :messages) "message")
          (contexture-conversations--many (plist-get session :tokens) "token")))

(defun contexture-conversations--many (number noun)
  "Return NUMBER and NOUN, with an s unless NUMBER is 1, as text.
There are commas between the thousands.  NUMBER may be nil for 0."
  (format "%s %s%s" (contexture--number number) noun
          (if (eql number 1) "" "s")))

(defun contexture-conversations--many-of (before after)
  "Return a phrase for BEFORE tokens that became AFTER tokens."
  (if (eql before after)
      (contexture-conversations--many after "token")
    (format "%s → %s" (contexture--number before)
            (contexture-conversations--many after "token"))))

(defun contexture-conversations--time (seconds)
  "Return SECONDS, a Unix time, as text: the time of today, or date and time."
  (format-time-string
   (if (equal (format-time-string "%F") (format-time-string "%F" seconds))
       "%R" "%F %R")
   seconds))

(defun contexture-conversations--key (command)
  "Return the key of COMMAND, or else how to call it by name, as text."
  (substitute-command-keys (format "\\[%s]" command)))

;;;; Calls

(defun contexture-conversations--params (&rest plist)
  "Return PLIST as parameters for the conversation that this buffer shows.
Leave out entries that are nil."
  (append (contexture--plist :session (contexture-conversations--here))
          (apply #'contexture--plist plist)))

(defun contexture-conversations--named-params ()
  "Return parameters that name this buffer's conversation, else the current one.
Calls that may be about a context, too, need the name."
  (or (contexture-conversations--params)
      (list :session
            (or (plist-get (car (contexture--ask 'list-sessions '(:current t))) :session)
                (user-error "No conversation is open; %s opens one"
                            (contexture-conversations--key 'contexture-conversation-open))))))

(defun contexture-conversations--call (method params success)
  "Call METHOD with PARAMS; then call SUCCESS with the result.
Show an error, with a command that helps if there is one."
  (let ((answered (lambda (then result)
                    (setq contexture--own-session-calls
                          (remq method contexture--own-session-calls))
                    (funcall then result))))
    (push method contexture--own-session-calls)
    (contexture-request-async
     method params
     :success (apply-partially answered success)
     :error (apply-partially answered #'contexture-conversations--show-error))))

(defun contexture-conversations--show-error (problem)
  "Show PROBLEM, the error of a call, with a command that helps if there is one."
  (contexture--message "Contexture: %s" (contexture-conversations--error-text problem)))

(defun contexture-conversations--error-text (problem)
  "Return the message for PROBLEM, the error of a call.
If no conversation is open, it names the command that opens one."
  (if (contexture-conversations--none-open-p problem)
      (contexture-conversations--none-open-text)
    (contexture--error-text problem)))

(defun contexture-conversations--none-open-text ()
  "Return the message for when no conversation is open."
  (format "no conversation is open; %s opens one"
          (contexture-conversations--key 'contexture-conversation-open)))

(defun contexture-conversations--none-open-p (problem)
  "Return non-nil if PROBLEM, an error, says that no conversation is open."
  (let ((data (plist-get problem :data)))
    (and (eq (plist-get data :kind) :no-such-session)
         (null (plist-get data :session))))) ; the call named none

(defun contexture-conversations--announce (session method)
  "Tell the functions that watch notifications that METHOD changed SESSION.
SESSION is an entry of the server, which does not announce such changes."
  (run-hook-with-args 'contexture-notification-functions 'session-changed
                      (list :session (plist-get session :session)
                            :session-id (plist-get session :id)
                            :method method
                            :messages (plist-get session :messages))))

;;;; Completion

(defun contexture-conversations--name-entries (sessions)
  "Return an alist from unique names to SESSIONS, entries of the server."
  (let ((seen (make-hash-table :test #'equal)))
    (mapcar (lambda (session)
              (let ((name (plist-get session :session)))
                (prog1 (cons (if (gethash name seen)
                                 (format "%s <%s>" name (plist-get session :id))
                               name)
                             session)
                  (puthash name t seen))))
            sessions)))

(defun contexture-conversations--choose (prompt sessions &optional default new)
  "Ask the user with PROMPT for one of SESSIONS, entries of the server.
DEFAULT is the id of one.  Return the chosen entry.  If NEW is non-nil, allow
a new name, too; then return that."
  (let* ((alist (contexture-conversations--name-entries sessions))
         (known (make-hash-table :test #'equal))
         (default (or (car (cl-find default alist :test #'equal
                                    :key (lambda (it) (plist-get (cdr it) :id))))
                      (and (not new) (caar alist))))
         (name (progn
                 (pcase-dolist (`(,name . ,session) alist)
                   (puthash name session known))
                 (minibuffer-with-setup-hook
                     (if new #'contexture-sets--allow-spaces #'ignore)
                   (completing-read
                    (format-prompt prompt (contexture--visible default))
                    (contexture-conversations--table (mapcar #'car alist) known)
                    nil (not new) nil 'contexture-conversation-names-history default)))))
    (or (gethash name known)
        (if (and new (not (string-blank-p name))) (contexture--trim name)
          (user-error "No conversation was chosen")))))

(defun contexture-conversations--table (names known)
  "Return a completion table of NAMES of conversations.
KNOWN is a hash table from each name to the server's entry."
  (contexture--table
   names 'contexture-conversations
   (lambda (name)
     (if-let* ((session (gethash name known)))
         (concat "  " (propertize " " 'display '(space :align-to 32))
                 (if-let* ((project (plist-get session :project)))
                     (concat (contexture--project-label project) ", ")
                   "")
                 (format "%s, %s%s" (contexture-conversations--size session)
                         (contexture-sets--age
                          (or (plist-get session :deleted)
                              (plist-get session :updated)))
                         (cond ((plist-get session :deleted) " deleted")
                               ((plist-get session :current) ", current")
                               (t ""))))
       ""))))

(defun contexture-conversations--read (prompt &optional new)
  "Ask with PROMPT for a conversation; return its entry.
The default is that of this buffer, or else the current one.  If NEW is
non-nil, there is no default; allow a new name, too, and return that."
  (let ((sessions (contexture--ask 'list-sessions nil)))
    (unless (or sessions new)
      (contexture--user-error "There is no conversation yet; %s starts one"
                  (contexture-conversations--key 'contexture-conversation-new)))
    (contexture-conversations--choose
     prompt sessions
     (unless new
       (or (contexture-conversations--here)
           (plist-get (cl-find-if (lambda (it) (plist-get it :current)) sessions)
                      :id)))
     new)))

(defun contexture-conversations--id (session)
  "Return the id of SESSION if it is an entry, else SESSION, an id or a name."
  (if (stringp session) session (plist-get session :id)))

(defun contexture-conversations--name (session)
  "Return the name of SESSION if it is an entry, else SESSION, a string."
  (if (stringp session) session (plist-get session :session)))

;;;; Opening

;;;###autoload
(defun contexture-conversation-open (conversation &optional context)
  "Make CONVERSATION the current conversation; start it if it does not exist.
CONVERSATION is a name.  A new conversation has the items of this buffer's
project and those for everywhere, as with `contexture-conversation'.  With a
prefix argument, it has all items of this buffer's context, CONTEXT, which is
a name or a list of names."
  (interactive
   (list (contexture-conversations--name (contexture-conversations--read "Open conversation" t))
         (and current-prefix-arg (contexture-current-context))))
  (contexture--with-layers
   (lambda ()
     (contexture-conversations--call
      'open-session
      (append (contexture--context-params (or context (contexture--conversation-context)))
              (contexture--plist :name conversation :project (contexture--project-root)))
      #'contexture-conversations--tell-opened))))

(defun contexture-conversations--send-no-memories (session)
  "Have SESSION, an entry of a new conversation, send no memories by itself.
The user would not see them before they are sent; /memories shows them."
  (contexture-conversations--call
   'configure-session (list :session (plist-get session :id) :grounding-memories 0) #'ignore))

(defun contexture-conversations--tell-opened (session)
  "Tell the user that SESSION, an entry, is the current conversation now.
Also tell the functions that watch notifications."
  (when (plist-get session :created-now)
    (contexture-conversations--send-no-memories session))
  (contexture-conversations--announce session "open-session")
  (if (plist-get session :created-now)
      (contexture--message "Started conversation %s%s" (plist-get session :session)
               (let ((others (cl-remove-if (lambda (name)
                                             (or (equal name contexture--shared)
                                                 (string-prefix-p "*session " name)))
                                           (or (plist-get session :managers)
                                               (list (plist-get session :manager))))))
                 (if others
                     (concat ", which has the items of "
                             (mapconcat #'contexture--label others " and "))
                   "")))
    (contexture--message "Conversation %s is open (%s)" (plist-get session :session)
             (contexture-conversations--size session))))

;;;###autoload
(defun contexture-conversation-new (&optional name context)
  "Start a conversation called NAME, and make it the current one.
If NAME is empty, the server chooses a name; if there is a conversation
called NAME, open that.  CONTEXT is as for `contexture-conversation-open'."
  (interactive
   (list (read-string "Start conversation (empty for an automatic name): " nil
                      'contexture-conversation-names-history)
         (and current-prefix-arg (contexture-current-context))))
  (let ((name (contexture--trim (or name ""))))
    (contexture-conversation-open (unless (string-empty-p name) name) context)))

;;;###autoload
(defun contexture-conversation-make-current (conversation)
  "Make CONVERSATION the current conversation.
CONVERSATION is the id or the name of one that exists."
  (interactive (list (contexture-conversations--id
                      (contexture-conversations--read "Switch to conversation"))))
  (contexture-conversations--call
   'open-session (list :name conversation :create nil)
   (lambda (entry)
     (contexture-conversations--announce entry "open-session")
     (contexture--message "Conversation %s is open (%s)" (plist-get entry :session)
              (contexture-conversations--size entry)))))

;;;###autoload
(defun contexture-conversation-rename (conversation name)
  "Rename a conversation to NAME.
CONVERSATION is its id or its name."
  (interactive
   (let* ((conversation (contexture-conversations--read "Rename conversation"))
          (old (contexture-conversations--name conversation)))
     (list (contexture-conversations--id conversation)
           (read-string (contexture--format "Rename %s to: " old) nil
                        'contexture-conversation-names-history old))))
  (when (string-blank-p name)
    (user-error "A conversation needs a name"))
  (contexture-conversations--call
   'configure-session (list :session conversation :name (contexture--trim name))
   (lambda (entry)
     (contexture--message "The conversation is now called %s" (plist-get entry :session)))))

;;;; Deleting and bringing back

;;;###autoload
(defun contexture-conversation-delete (conversation)
  "Delete a conversation; `contexture-conversation-bring-back' brings it back.
CONVERSATION is its id or its name."
  (interactive (list (contexture-conversations--id
                      (contexture-conversations--read "Delete conversation"))))
  (contexture-conversations--call
   'delete-session (list :session conversation)
   (lambda (entry)
     (contexture--message "Deleted conversation %s (%s); %s brings it back"
              (plist-get entry :session) (contexture-conversations--size entry)
              (contexture-conversations--key 'contexture-conversation-bring-back)))))

;;;###autoload
(defun contexture-conversation-bring-back (conversation)
  "Bring back a deleted conversation.
CONVERSATION is its id or its name."
  (interactive
   (let ((deleted (cl-remove-if-not
                   (lambda (it) (plist-get it :deleted))
                   (contexture--ask 'list-sessions '(:deleted t)))))
     (unless deleted
       (user-error "There are no deleted conversations"))
     (list (contexture-conversations--id
            (contexture-conversations--choose "Bring back conversation" deleted)))))
  (contexture-conversations--call
   'delete-session (list :session conversation :deleted :false)
   (lambda (entry)
     (contexture--message "Conversation %s is back (%s); %s switches to it"
              (plist-get entry :session) (contexture-conversations--size entry)
              (contexture-conversations--key 'contexture-conversation-make-current)))))

;;;; Keys

;;;###autoload (autoload 'contexture-conversation-map "contexture-conversations" nil nil 'keymap)
(defvar contexture-conversation-map
  (let ((map (make-sparse-keymap)))
    (define-key map "o" #'contexture-conversation-open)
    (define-key map "n" #'contexture-conversation-new)
    (define-key map "s" #'contexture-conversation-make-current)
    (define-key map "r" #'contexture-conversation-rename)
    (define-key map "d" #'contexture-conversation-delete)
    (define-key map "D" #'contexture-conversation-bring-back)
    (define-key map "f" #'contexture-conversation-fork)
    (define-key map "/" #'contexture-conversation-search)
    (define-key map "t" #'contexture-conversation-transcript)
    (define-key map "x" #'contexture-conversation-export)
    (define-key map "i" #'contexture-import-sessions)
    (define-key map "l" #'contexture-sessions)
    (define-key map "a" #'contexture-conversation-add-message)
    (define-key map "A" #'contexture-conversation-add-region)
    (define-key map "c" #'contexture-conversation-name-turn)
    (define-key map "b" #'contexture-conversation-go-back)
    (define-key map "p" #'contexture-conversation-leave-out)
    (define-key map "S" #'contexture-conversation-shorten)
    (define-key map "u" #'contexture-conversation-undo)
    (define-key map "U" #'contexture-conversation-redo)
    (define-key map "R" #'contexture-conversation-undo-to)
    (define-key map "C" #'contexture-conversation-set)
    (define-key map "v" #'contexture-dashboard)
    (define-key map "w" #'contexture-dashboard-browse)
    (define-key map "V" #'contexture-conversation-notes)
    (define-key map "e" #'contexture-explain)
    (define-key map "?" #'contexture-conversation-menu)
    map)
  "Keymap of the commands for conversations.
It is on `n' in `contexture-command-map'.")
(fset 'contexture-conversation-map contexture-conversation-map)

;;; A conversation in the mode line

;; `contexture-conversation-mode-line-mode' shows in the mode line whether the
;; current conversation is idle, active or nearly full.  It listens to a running
;; server and starts none; nothing polls.

(defvar contexture-conversations-line--session nil
  "Id of the conversation whose count the mode line shows, or nil.")

(defvar contexture-conversations-line--asking nil
  "Non-nil during a call that asks which conversation is current.
It is `again' if a conversation has changed meanwhile.")

;;;###autoload
(define-minor-mode contexture-conversation-mode-line-mode
  "Show the state of the current conversation in the mode line.
It is \"conv:idle\" while nothing would be sent.  Then it has the tokens that
would be sent now and the most that are sent, as in \"conv:1,234/8,192\".
It ends with \"!\", in the face
`contexture-conversation-warning', if the messages fill more than 80 percent
of the limit.  A tilde says that the server is still counting.  If no
conversation is open, the mode line shows nothing."
  :global t
  :group 'contexture-conversations
  :lighter (:eval (contexture-conversations-line--lighter))
  (setq contexture-conversations-line--session nil
        contexture-conversations-line--asking nil)
  (if contexture-conversation-mode-line-mode
      (progn
        (contexture-watch #'contexture-conversations-line--changed
                          contexture-conversations--topics)
        (add-hook 'contexture-connected-hook #'contexture-conversations-line--ask)
        (add-hook 'contexture-disconnected-hook #'contexture-conversations-line--forget)
        (contexture-conversations-line--ask))
    (contexture-unwatch #'contexture-conversations-line--changed)
    (remove-hook 'contexture-connected-hook #'contexture-conversations-line--ask)
    (remove-hook 'contexture-disconnected-hook #'contexture-conversations-line--forget)
    (contexture-count--unfollow 'mode-line))
  (force-mode-line-update t))

(defun contexture-conversation-state (stats)
  "Return `idle', `active' or `warning', as STATS say.
STATS is an answer of `session-report' or `count-window'."
  (cond ((plist-get stats :needs-pruning) 'warning)
        ((> (or (plist-get stats :tokens) 0) 0) 'active)
        (t 'idle)))

(defun contexture-conversations-line--lighter ()
  "Return the text for the mode line, or nil if there is nothing to show.
It is a list if it has a face: the mode line takes one string as a whole in
one face."
  (when-let* ((count (contexture-count--of contexture-conversations-line--session))
              (short (contexture-count--short contexture-conversations-line--session)))
    (pcase (contexture-conversation-state count)
      ('idle " conv:idle")
      ('active (concat " conv:" short))
      ('warning (list " " (propertize (concat "conv:" short "!")
                                      'face 'contexture-conversation-warning))))))

(defun contexture-conversations-line--changed (method _params)
  "Ask for the current conversation again if METHOD is about conversations."
  (when (memq method contexture-conversations--topics)
    (contexture-conversations-line--ask)))

(defun contexture-conversations-line--ask ()
  "Ask the server, if one is connected, which conversation is the current one.
During such a call, only note to ask again."
  (cond (contexture-conversations-line--asking
         (setq contexture-conversations-line--asking 'again))
        ((contexture-running-p)
         (setq contexture-conversations-line--asking t)
         (contexture-request-async
          'list-sessions '(:current t)
          :success (lambda (sessions)
                     (contexture-conversations-line--answered (car sessions)))
          :error (lambda (_) (contexture-conversations-line--answered nil))))))

(defun contexture-conversations-line--answered (session)
  "Show the token count of SESSION, an entry, or nothing if it is nil.
SESSION is what the server says is the current conversation."
  (let ((again (eq contexture-conversations-line--asking 'again)))
    (setq contexture-conversations-line--asking nil)
    (when contexture-conversation-mode-line-mode
      (contexture-conversations-line--follow (plist-get session :id))
      (when again
        (contexture-conversations-line--ask)))))

(defun contexture-conversations-line--follow (id)
  "Show the token count of the conversation with ID, or nothing if ID is nil."
  (setq contexture-conversations-line--session id)
  (if id
      (contexture-count--follow id 'mode-line #'contexture-conversations-line--redraw)
    (contexture-count--unfollow 'mode-line))
  (contexture-conversations-line--redraw))

(defun contexture-conversations-line--redraw ()
  "Redraw all mode lines."
  (force-mode-line-update t))

(defun contexture-conversations-line--forget ()
  "Show nothing in the mode line, since the server is gone."
  (contexture-conversations-line--follow nil))

;;; Read, search and export conversations

;; Shows conversations: the transcript of one, the hits of a search through
;; all, and exports, which `contexture-import-sessions' reads again.

(defface contexture-conversation-role '((t :inherit font-lock-keyword-face :weight bold))
  "Face of the role of a message in a transcript."
  :group 'contexture-conversations)

(defface contexture-conversation-not-sent '((t :inherit shadow))
  "Face of messages that are no longer sent to the model."
  :group 'contexture-conversations)

(defface contexture-conversation-title '((t :inherit bold :underline t))
  "Face of headings in buffers that show conversations."
  :group 'contexture-conversations)

;;;; Messages

(defun contexture-conversations--message-heading (message)
  "Return the line above MESSAGE in a transcript: role, id, time and so on."
  (concat
   (propertize (contexture--name (plist-get message :role))
               'face 'contexture-conversation-role)
   (propertize
    (concat
     (format "  %s, %s, %s" (plist-get message :id)
             (contexture-conversations--time (plist-get message :timestamp))
             (contexture-conversations--many (plist-get message :tokens) "token"))
     (if-let* ((id (plist-get message :tool-call-id)))
         (concat ", answers " (contexture--visible id))
       "")
     (if (plist-get message :pinned) ", pinned" "")
     (if-let* ((out (plist-get message :out))) (concat ", not sent: " out) ""))
    'face 'shadow)))

(defun contexture-conversations--message-text (message)
  "Return MESSAGE as text for a transcript, with its heading."
  (let ((body (concat
               (contexture--trim-right (plist-get message :content))
               (mapconcat (lambda (call)
                            (format "\n→ %s %s"
                                    (contexture--visible (plist-get call :name))
                                    (plist-get call :arguments)))
                          (plist-get message :tool-calls) ""))))
    (propertize
     (concat (contexture-conversations--message-heading message) "\n"
             (contexture--edited
              (if (plist-get message :out)
                  (propertize body 'face 'contexture-conversation-not-sent)
                body)
              (lambda ()
                (while (not (eobp))
                  (unless (eolp) (insert "  "))
                  (forward-line))))
             "\n\n")
     'contexture-conversation-message message)))

;;;; The transcript

(defvar contexture-conversation-transcript-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "n" #'contexture-conversation-transcript-next)
    (define-key map "p" #'contexture-conversation-transcript-previous)
    (define-key map "P" #'contexture-conversation-transcript-pin)
    (define-key map "w" #'contexture-conversation-transcript-copy)
    (define-key map "l" #'contexture-conversation-transcript-toggle-log)
    (define-key map "a" #'contexture-conversation-add-message)
    (define-key map "v" #'contexture-dashboard)
    (define-key map "?" #'describe-mode)
    map)
  "Keymap of `contexture-conversation-transcript-mode'.")

(defvar-local contexture-conversations--view :conversation
  "Messages in this transcript: `:conversation', or `:log' for all.
`:conversation' leaves out what was rolled back.")

(define-derived-mode contexture-conversation-transcript-mode special-mode "Transcript"
  "Major mode for the transcript of a conversation.
\\<contexture-conversation-transcript-mode-map>\
\\[contexture-conversation-transcript-next] and \
\\[contexture-conversation-transcript-previous] go from message to message,
\\[contexture-conversation-transcript-pin] pins the one at point, so that it is
never left out, and \\[contexture-conversation-transcript-copy] copies it.
\\[contexture-conversation-transcript-toggle-log] also shows what was taken back,
and \\[revert-buffer] asks the server again.

See Info node `(contexture)Keeping conversations'.

\\{contexture-conversation-transcript-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq-local revert-buffer-function #'contexture-conversations-transcript--revert
              word-wrap t))

;;;###autoload
(defun contexture-conversation-transcript (conversation &optional message)
  "Show the transcript of a conversation, by default the current one.
With a prefix argument, choose the conversation.  CONVERSATION is its id, or
nil for the current one.  Point goes to MESSAGE, an id, or to the last
message."
  (interactive
   (list (if current-prefix-arg
             (contexture-conversations--id (contexture-conversations--read "Transcript of"))
           contexture-conversations--shown)))
  (if conversation
      (contexture-conversations-transcript--fetch conversation :conversation message)
    (contexture-conversations--call
     'list-sessions '(:current t)
     (lambda (sessions)
       (if sessions
           (contexture-conversations-transcript--fetch (plist-get (car sessions) :id)
                                                       :conversation message)
         (contexture--message "Contexture: %s" (contexture-conversations--none-open-text)))))))

(defun contexture-conversations-transcript--fetch (session view &optional message buffer)
  "Fetch the messages of SESSION, an id, in VIEW, and show the transcript.
VIEW is a value of `contexture-conversations--view'.  Point goes to MESSAGE,
an id.  BUFFER, if given, is the transcript's buffer, to be updated."
  (contexture-conversations--call
   'session-report (list :session session)
   (lambda (stats)
     (contexture-request-pages
      'get-messages (list :session session :view view)
      :success (lambda (messages)
                 (contexture-conversations-transcript--show session stats view messages
                                                            message buffer))
      :error #'contexture-conversations--show-error))))

(defun contexture-conversations-transcript--show (session stats view messages message buffer)
  "Show MESSAGES and STATS of SESSION, an id, in VIEW.
Point goes to MESSAGE, an id, if it is there.  BUFFER is the transcript's
buffer to update, or nil to pop to one."
  (let ((again buffer)
        (buffer (or buffer
                    (get-buffer-create
                     (contexture--format "*contexture: conversation %s*"
                                         (plist-get stats :session))))))
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (unless (derived-mode-p 'contexture-conversation-transcript-mode)
          (contexture-conversation-transcript-mode))
        (setq contexture-conversations--shown session
              contexture-conversations--view view)
        (contexture-conversations-transcript--insert stats messages)
        (contexture-conversations-transcript--goto message))
      (unless again
        (pop-to-buffer buffer)
        (contexture-conversations-transcript--goto message)))))

(defun contexture-conversations-transcript--insert (stats messages)
  "Show MESSAGES in this buffer, below a header line from STATS."
  (let ((inhibit-read-only t))
    (erase-buffer)
    (setq header-line-format
          (contexture--header-line
           (format "Conversation %s: %s, %s sent, %s%s" (plist-get stats :session)
                   (contexture-conversations--many (length messages) "message")
                   (contexture--number (plist-get stats :items))
                   (contexture-conversations--many (plist-get stats :tokens) "token")
                   (if (eq contexture-conversations--view :log)
                       "; with what was taken back" ""))))
    (if messages
        (progn
          (apply #'insert (mapcar #'contexture-conversations--message-text messages))
          (contexture--shorten-lines "in it")
          (contexture--show-hidden))
      (insert "There is no message yet.  "
              (contexture-conversations--key 'contexture-conversation-add-message)
              " adds a message.\n"))))

(defun contexture-conversations-transcript--goto (id)
  "Go to the message ID, or to the last one if it is not there."
  (goto-char (point-max))
  (let ((position (and id (point-min))))
    (while (and position
                (not (equal id (plist-get (get-text-property
                                           position 'contexture-conversation-message)
                                          :id))))
      (setq position (next-single-property-change
                      position 'contexture-conversation-message)))
    (if position (goto-char position)
      (contexture-conversation-transcript-previous))))

(defun contexture-conversations-transcript--revert (&rest _)
  "Fetch the messages again, and stay at the one at point."
  (contexture-conversations-transcript--fetch
   contexture-conversations--shown contexture-conversations--view
   (plist-get (get-text-property (point) 'contexture-conversation-message) :id)
   (current-buffer)))

(defun contexture-conversation-transcript-next (&optional count)
  "Go to the next message, or COUNT messages forward."
  (interactive "p")
  (dotimes (_ (or count 1))
    (let ((next (next-single-property-change (point) 'contexture-conversation-message)))
      (when (and next (< next (point-max)))
        (goto-char next)))))

(defun contexture-conversation-transcript-previous (&optional count)
  "Go back to the beginning of a message, or to that COUNT messages back."
  (interactive "p")
  (dotimes (_ (or count 1))
    (goto-char (previous-single-property-change
                (point) 'contexture-conversation-message nil (point-min)))))

(defun contexture-conversations-transcript--message ()
  "Return the message at point, or signal an error."
  (or (get-text-property (point) 'contexture-conversation-message)
      (user-error "There is no message at point")))

(defun contexture-conversation-transcript-pin ()
  "Pin or unpin the message at point.
A window never leaves out a pinned message."
  (interactive)
  (let* ((message (contexture-conversations-transcript--message))
         (pin (not (plist-get message :pinned)))
         (buffer (current-buffer)))
    (contexture-conversations--call
     'pin-message
     (append (contexture-conversations--params :id (plist-get message :id))
             (list :pinned pin))
     (lambda (result)
       (contexture-conversations--announce result "pin-message")
       (contexture--message "%s is %s" (plist-get message :id)
                (if (plist-get result :pinned) "pinned" "not pinned"))
       (contexture--with-live-buffer buffer
         (revert-buffer))))))

(defun contexture-conversation-transcript-copy ()
  "Copy the text of the message at point to the kill ring."
  (interactive)
  (let ((message (contexture-conversations-transcript--message)))
    (kill-new (plist-get message :content))
    (contexture--message "Copied %s" (plist-get message :id))))

(defun contexture-conversation-transcript-toggle-log ()
  "Show or hide the messages that were taken back."
  (interactive)
  (setq contexture-conversations--view
        (if (eq contexture-conversations--view :log) :conversation :log))
  (revert-buffer))

;;;; Single messages

(defconst contexture-conversations--message-buffer "*contexture: message*"
  "Name of the buffer that shows chosen messages of a conversation.")

(defun contexture-conversations--show-messages (session params)
  "Show the messages that PARAMS choose in their own buffer.
SESSION is the id of their conversation, or nil for the current one.  PARAMS
are parameters of `get-messages'."
  (contexture-conversations--call
   'get-messages (append (contexture--plist :session session) '(:view :log) params)
   (lambda (messages)
     (let ((buffer (get-buffer-create contexture-conversations--message-buffer))
           (inhibit-read-only t))
       (with-current-buffer buffer
         (contexture-conversation-transcript-mode)
         (setq contexture-conversations--shown session
               revert-buffer-function #'ignore)
         (erase-buffer)
         (apply #'insert (mapcar #'contexture-conversations--message-text messages))
         (contexture--shorten-lines "in it")
         (contexture--show-hidden)
         (goto-char (point-min)))
       (pop-to-buffer buffer)))))

;;;; Searching

(defconst contexture-conversation-search-buffer "*contexture: search*"
  "Name of the buffer that shows the hits of a search in conversations.")

(defvar contexture-conversation-message-history nil
  "Minibuffer history of messages, and of texts about checkpoints.")

(defvar contexture-conversation-setting-history nil
  "Minibuffer history of values of settings.")

(defvar contexture-conversation-search-history nil
  "Minibuffer history of searches in conversations.")

(defvar-local contexture-conversations--query nil
  "Query, a string, whose hits this buffer shows.")

(defvar contexture-conversation-search-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-conversation-search-visit)
    (define-key map [mouse-2] #'contexture-conversation-search-visit)
    (define-key map [follow-link] 'mouse-face)
    (define-key map "n" #'next-line)
    (define-key map "p" #'previous-line)
    (define-key map "s" #'contexture-conversation-search)
    (define-key map "?" #'describe-mode)
    map)
  "Keymap of `contexture-conversation-search-mode'.")

(define-derived-mode contexture-conversation-search-mode special-mode "Search"
  "Major mode for the hits of a search in conversations.
\\<contexture-conversation-search-mode-map>\
\\[contexture-conversation-search-visit] shows the message in its conversation.

See Info node `(contexture)Keeping conversations'.

\\{contexture-conversation-search-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq-local truncate-lines t
              revert-buffer-function #'contexture-conversations-search--revert))

;;;###autoload
(defun contexture-conversation-search (query)
  "Search the names and messages of all conversations for the words of QUERY.
The best hits come first; RET shows one in its conversation.  If there is a
hub, what others share follows when the hub answers, and says whose it is."
  (interactive (list (read-string "Search conversations for: " nil
                                  'contexture-conversation-search-history)))
  (when (string-blank-p query)
    (user-error "Type some words to search for"))
  (contexture-conversations--call
   'list-sessions (list :query query :limit 100)
   (lambda (hits)
     (if (null hits)
         (contexture--message "No conversation matches %s" query)
       (pop-to-buffer (get-buffer-create contexture-conversation-search-buffer))
       (contexture-conversations-search--show query hits))
     (contexture-conversations-search--ask-hub query hits))))

(defun contexture-conversations-search--ask-hub (query hits)
  "Show what the hub has for QUERY below HITS, those of this machine.
Without a hub, or while it cannot be reached, show only HITS."
  (contexture-request-async
   'list-sessions (list :query query :limit 100 :hub t)
   :success
   (lambda (more)
     (let ((buffer (get-buffer contexture-conversation-search-buffer)))
       (when (and more (or (null hits)
                           (equal query (and buffer (buffer-local-value
                                                     'contexture-conversations--query buffer)))))
         (unless hits
           (contexture--message "What others share has %s" (contexture--count (length more) "hit"))
           (pop-to-buffer (get-buffer-create contexture-conversation-search-buffer)))
         (with-current-buffer contexture-conversation-search-buffer
           (let ((line (line-number-at-pos)))
             (contexture-conversations-search--show query (append hits more))
             (forward-line (1- line)))))))
   :error #'ignore))

(defun contexture-conversations--whose (hit)
  "Return whose HIT is, and from which machine, as text; empty if it is from here."
  (let ((author (contexture--visible (plist-get hit :shared-by)))
        (machine (contexture--visible (plist-get hit :machine))))
    (propertize (cond (author (format "[%s at %s] " author machine))
                      (machine (format "[%s] " machine))
                      (t ""))
                'face 'shadow)))

(defun contexture-conversations-search--show (query hits)
  "Show HITS, the result of a search for QUERY, in this buffer."
  (unless (derived-mode-p 'contexture-conversation-search-mode)
    (contexture-conversation-search-mode))
  (setq contexture-conversations--query query
        header-line-format
        (contexture--header-line
         (format "%s for \"%s\", the best first" (contexture--count (length hits) "hit")
                 query)))
  (let* ((inhibit-read-only t)
         (column (lambda (text)
                   (apply #'max 1 (mapcar (lambda (it) (string-width (funcall text it)))
                                          hits))))
         (session (lambda (it) (contexture--visible (plist-get it :session))))
         (width (min 24 (funcall column session))))
    (erase-buffer)
    (dolist (hit hits)
      (let ((name (contexture-conversations--fit (funcall session hit) width))
            (role (contexture-conversations--fit
                   (contexture--name (or (plist-get hit :role) "name")) 9))
            (text (or (plist-get hit :snippet) "")))
        (insert (propertize
                 (concat (propertize name 'face 'bold) "  "
                         (propertize role 'face 'contexture-conversation-role) " "
                         (contexture-conversations--whose hit)
                         (replace-regexp-in-string "[ \t\n\r]+" " " text) "\n")
                 'contexture-conversation-hit hit 'mouse-face 'highlight
                 'help-echo "RET: show it in its conversation"))))
    (contexture--shorten-lines "not shown")
    (contexture--show-hidden)
    (goto-char (point-min))))

(defun contexture-conversations--fit (text width)
  "Return TEXT cut or padded to exactly WIDTH columns."
  (truncate-string-to-width text width nil ?\s t))

(defun contexture-conversations-search--revert (&rest _)
  "Repeat the search whose hits this buffer shows."
  (contexture-conversation-search contexture-conversations--query))

(defun contexture-conversation-search-visit (&optional event)
  "Show the message of a hit in the transcript of its conversation.
The hit is at point, or where EVENT, a click, is."
  (interactive (list last-nonmenu-event))
  (when (mouse-event-p event)
    (mouse-set-point event))
  (let ((hit (or (get-text-property (point) 'contexture-conversation-hit)
                 (user-error "There is no hit at point"))))
    (if (plist-get hit :shared-by)
        (contexture-conversations--show-shared hit)
      (contexture-conversation-transcript (plist-get hit :id) (plist-get hit :message)))))

(defun contexture-conversations--show-shared (hit)
  "Show the whole of HIT, which somebody shares on the hub, in a buffer."
  (contexture-request-async
   'export-session (list :session (plist-get hit :id))
   :success
   (lambda (exported)
     (let ((buffer (get-buffer-create "*contexture: shared*")))
       (with-current-buffer buffer
         (special-mode)
         (setq header-line-format
               (contexture--header-line (contexture--visible (plist-get exported :session))))
         (let ((inhibit-read-only t))
           (erase-buffer)
           (insert (contexture--visible (plist-get exported :text) t))
           (contexture--shorten-lines "in it")
           (goto-char (point-min))))
       (pop-to-buffer buffer)))))

;;;; Exporting and importing

;;;###autoload
(defun contexture-conversation-export (conversation &optional format file)
  "Export all messages of a conversation, by default the current one.
CONVERSATION is its id, or nil for the current one.  FORMAT is a symbol;
the default is `markdown', which reads well.  `contexture-import-sessions'
opens it again, and `contexture-conversation-branch' branches at its
headings.  Show the text in a buffer or, with a prefix argument, write it
to FILE, in the format that its name ends with, such as \".json\"."
  (interactive
   (let ((usual (caar contexture--exports)))
     (if current-prefix-arg
         (let* ((file (read-file-name "Export to file, in the format that its name ends with: "))
                (ending (downcase (or (file-name-extension file) ""))))
           (list contexture-conversations--shown
                 (intern (if (assoc ending contexture--exports) ending usual)) file))
       (list contexture-conversations--shown
             (intern (completing-read (format-prompt "Export as" usual)
                                      contexture--exports nil t nil nil usual))))))
  (when (and file (file-exists-p file)
             (not (contexture--y-or-n-p (contexture--format "Replace %s? " (contexture--abbreviate file)))))
    (user-error "Nothing was written; choose another file"))
  (contexture-conversations--call
   'export-session
   (contexture--plist :session conversation :format (or format 'markdown))
   (lambda (result)
     (if file
         (let ((coding-system-for-write 'utf-8-unix))
           (write-region (plist-get result :text) nil file nil 'silent)
           (contexture--message "Wrote conversation %s (%s) as %s to %s" (plist-get result :session)
                    (contexture-conversations--many (plist-get result :messages) "message")
                    (or format 'markdown)
                    (contexture--abbreviate file)))
       (contexture-conversations--show-export result (or format 'markdown))))))

(defun contexture-conversations--show-export (result format)
  "Show RESULT, that of `export-session' with FORMAT, in its own buffer."
  (let ((buffer (get-buffer-create
                 (contexture--format "*contexture: export of %s*" (plist-get result :session)))))
    (with-current-buffer buffer
      (let ((inhibit-read-only t))
        (contexture--enter-mode
         (cl-find-if #'fboundp (if (eq format 'json) '(js-mode)
                                 '(markdown-mode text-mode)))
         (plist-get result :text))
        (contexture--show-hidden)
        (with-silent-modifications
          (contexture--shorten-lines "in it" t)))
      (setq-local buffer-file-coding-system 'utf-8-unix)
      (set-buffer-modified-p nil)
      (goto-char (point-min)))
    (pop-to-buffer buffer)))

;;; Change a conversation, and undo it

;; Commands that change a conversation: adding to it, taking checkpoints and
;; going back to them, pruning and summarizing, and its settings.  Commands
;; do not wait for the server, except for the names to choose from.

;;;; Adding

(defun contexture-conversations--read-role (ask)
  "Return the role of a new message: \"user\".
If ASK is non-nil, ask for another role."
  (if ask
      (completing-read (format-prompt "Role" "user")
                       '("user" "assistant" "system" "tool")
                       nil t nil nil "user")
    "user"))

;;;###autoload
(defun contexture-conversation-add-message (text &optional role)
  "Append TEXT to the conversation as a message of the user.
With a prefix argument, choose another ROLE, such as \"assistant\"."
  (interactive
   (let ((role (contexture-conversations--read-role current-prefix-arg)))
     (list (read-string (contexture--format "Message of the %s: " role) nil
                        'contexture-conversation-message-history)
           role)))
  (when (string-blank-p text)
    (user-error "The message is empty"))
  (contexture-conversations--call
   'add-message
   (contexture-conversations--params :content text :role (intern (or role "user")))
   (lambda (result)
     (contexture--message "Added %s to conversation %s (%s)" (plist-get result :id)
              (plist-get result :session) (contexture-conversations--size result)))))

;;;###autoload
(defun contexture-conversation-add-region (beg end &optional role)
  "Append the text between BEG and END to the conversation as a message.
With a prefix argument, choose another ROLE than the user.  The message
does not record its source; use `contexture-add-region' to keep that."
  (interactive
   (progn
     (unless (use-region-p)
       (user-error "Mark a region first"))
     (list (region-beginning) (region-end)
           (contexture-conversations--read-role current-prefix-arg))))
  (contexture-conversation-add-message (buffer-substring-no-properties beg end) role)
  (setq deactivate-mark t))

;;;; Checkpoints

;;;###autoload
(defun contexture-conversation-name-turn (&optional text)
  "Name the present turn of the conversation TEXT, to go back to it later.
TEXT may be empty.  Where a question begins is noted anyway."
  (interactive (list (read-string "Name of this turn: " nil
                                  'contexture-conversation-message-history)))
  (contexture-conversations--call
   'checkpoint
   (contexture-conversations--params
    :message (unless (string-blank-p (or text "")) (contexture--trim text)))
   (lambda (result)
     (if result
         (contexture--message "Named turn %d of conversation %s; %s goes back to it"
                              (plist-get result :turn) (plist-get result :session)
                  (contexture-conversations--key 'contexture-conversation-go-back))
       (contexture--message "This conversation keeps no turns to go back to; its setting \
\"versioning\" is off (%s)" (contexture-conversations--key 'contexture-conversation-set))))))

(defun contexture-conversations--checkpoint-text (checkpoint turns)
  "Return the annotation of CHECKPOINT in a conversation with TURNS turns.
It says how many turns going back to it would lose."
  (let ((lost (max 0 (- turns (plist-get checkpoint :turn)))))
    (format "%s%s, %s"
            (contexture-conversations--time (plist-get checkpoint :created))
            (if (plist-get checkpoint :automatic) ", automatic" "")
            (if (= lost 0) "loses no turns"
              (concat "loses " (contexture--count lost "turn"))))))

(defun contexture-conversations--choose-checkpoint (prompt checkpoints turns &optional default)
  "Ask the user with PROMPT for one of CHECKPOINTS; return its id.
The last of CHECKPOINTS to be taken is the first, and the conversation has
TURNS turns now.  DEFAULT is the id of one, by default of the last."
  (let* ((alist (mapcar (lambda (it)
                          (cons (format "turn %s  %s" (plist-get it :turn)
                                        (or (plist-get it :message) ""))
                                it))
                        checkpoints))
         (default (or (car (cl-find default alist :test #'equal
                                    :key (lambda (it) (plist-get (cdr it) :checkpoint))))
                      (caar alist)))
         (name (completing-read
                (format-prompt prompt (contexture--visible default))
                (contexture--table
                 (mapcar #'car alist) 'contexture-checkpoint
                 (contexture-sets--annotate
                  alist (lambda (it) (contexture-conversations--checkpoint-text it turns))))
                nil t nil nil default)))
    (or (plist-get (cdr (assoc name alist)) :checkpoint)
        (user-error "No turn was chosen"))))

(defun contexture-conversations--read-checkpoint (prompt)
  "Ask with PROMPT for a checkpoint of this buffer's conversation; return its id."
  (let* ((params (contexture-conversations--params))
         (stats (contexture--ask 'session-report params))
         (checkpoints
          (contexture--ask 'list-operations
                           (list :session (plist-get stats :session) :checkpoints t))))
    (unless checkpoints
      (contexture--user-error "Conversation %s has no turn to go back to; %s names one"
                  (plist-get stats :session)
                  (contexture-conversations--key 'contexture-conversation-name-turn)))
    (contexture-conversations--choose-checkpoint prompt checkpoints
                                                 (plist-get stats :turns))))

;;;###autoload
(defun contexture-conversation-go-back (turn)
  "Go back to an earlier turn of the conversation.
Later messages are taken back; they stay only in the log.
`contexture-conversation-undo' undoes this.  TURN is the id under which the
server knows the turn, such as \"chk-3\"."
  (interactive (list (contexture-conversations--read-checkpoint "Go back to")))
  (contexture-conversations--call
   'rollback (contexture-conversations--params :checkpoint turn)
   #'contexture-conversations--report-rolled-back))

(defun contexture-conversations--report-rolled-back (result)
  "Show a message that a conversation was rolled back.
RESULT is that of the method `rollback'."
  (contexture--message "Conversation %s went back: %s, %s taken back; %s undoes this"
           (plist-get result :session)
           (contexture--count (plist-get result :turns-lost) "turn")
           (contexture--count (plist-get result :messages-lost) "message")
           (contexture-conversations--key 'contexture-conversation-undo)))

(defun contexture-conversations--report-unrolled (result)
  "Show a message that going back to a turn was undone.
RESULT is that of the method that undid it."
  (contexture--message "Going back in conversation %s is undone: %s restored%s; %s redoes it"
           (plist-get result :session)
           (contexture--count (plist-get result :turns-restored) "turn")
           (let ((lost (or (plist-get result :turns-lost) 0)))
             (if (> lost 0)
                 (format "; %s made since then lost" (contexture--count lost "turn"))
               ""))
           (contexture-conversations--key 'contexture-conversation-redo)))

;;;###autoload
(defun contexture-conversation-fork (name &optional turn)
  "Start a conversation called NAME that continues from this one.
With a prefix argument, it continues from a turn that you choose; TURN is its
id.  If NAME is empty, the server chooses a name.  The new conversation
becomes current."
  (interactive
   (let ((turn (and current-prefix-arg
                    (contexture-conversations--read-checkpoint "Go on from"))))
     (list (read-string "Name of the new conversation (empty for an automatic one): " nil
                        'contexture-conversation-names-history)
           turn)))
  (contexture-conversations--call
   'open-session
   (contexture--plist
    :fork-of (plist-get (contexture-conversations--named-params) :session)
    :name (unless (string-blank-p (or name "")) (contexture--trim name))
    :checkpoint turn)
   (lambda (entry)
     (contexture--message "Conversation %s continues from %s (%s); it is now the current one"
              (plist-get entry :session) (if turn "that turn" "there")
              (contexture-conversations--size entry)))))

;;;; Leaving out and shortening

;;;###autoload
(defun contexture-conversation-leave-out (&optional tokens)
  "Leave the least important messages of the conversation out.
Stop when the messages that are sent have at most TOKENS, the prefix argument,
by default 80 percent of the model's limit.  `contexture-conversation-undo'
brings the messages back."
  (interactive (list (and current-prefix-arg
                          (prefix-numeric-value current-prefix-arg))))
  (contexture-conversations--call
   'prune-session (contexture-conversations--params :keep-tokens tokens :brief t)
   (lambda (result)
     (let* ((stats (plist-get result :stats))
            (removed (plist-get stats :items-removed)))
       (if (= removed 0)
           (contexture--message "Nothing to leave out: conversation %s has only %s"
                    (plist-get result :session)
                    (contexture-conversations--many (plist-get stats :final) "token"))
         (contexture--message "Left out %s of conversation %s: %s → %s tokens; %s brings them back"
                  (contexture--count removed "message")
                  (plist-get result :session)
                  (contexture--number (plist-get stats :original))
                  (contexture--number (plist-get stats :final))
                  (contexture-conversations--key 'contexture-conversation-undo)))))))

;;;###autoload
(defun contexture-conversation-shorten (&optional keep)
  "Shorten the older messages of the conversation to a summary.
The last KEEP messages, the prefix argument or else 10, stay as they are.  Show
the summary.  `contexture-conversation-undo' brings the messages back."
  (interactive (list (and current-prefix-arg
                          (prefix-numeric-value current-prefix-arg))))
  (contexture-conversations--call
   'summarize-session (contexture-conversations--params :keep-messages keep)
   (lambda (result)
     (contexture-conversations--show-summary (plist-get result :summary))
     (contexture--message "Shortened %s of conversation %s: %s → %s tokens; %s brings them back"
              (contexture--count
               (plist-get (plist-get result :stats) :summarized-items) "message")
              (plist-get result :session)
              (contexture--number (plist-get result :tokens-before))
              (contexture--number (plist-get result :tokens-after))
              (contexture-conversations--key 'contexture-conversation-undo)))))

(defun contexture-conversations--show-summary (summary)
  "Show SUMMARY, which replaces messages, in its own buffer.
It is a text, or a plist that has the text as `:content'."
  (let ((buffer (get-buffer-create "*contexture: summary*")))
    (with-current-buffer buffer
      (special-mode)
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (if (stringp summary) summary (plist-get summary :content)))
        (contexture--shorten-lines "in it")
        (contexture--show-hidden))
      (goto-char (point-min)))
    (pop-to-buffer buffer)))

;;;; Going back to another view

;;;###autoload
(defun contexture-conversation-undo ()
  "Undo the last change of the conversation that is not a message.
That is leaving out, shortening, going back to a turn, or an undo of several.
Use it again to undo earlier changes of the conversation.  To choose the
change to undo, use `contexture-conversation-undo-to'.
`contexture-conversation-redo' redoes what was undone."
  (interactive)
  (contexture-conversations--step 'undo :undone))

;;;###autoload
(defun contexture-conversation-redo ()
  "Redo the change of the conversation that was undone last.
Use it again to redo more.  After a new message, or another change of what
is sent, nothing can be redone."
  (interactive)
  (contexture-conversations--step 'redo :redone))

(defun contexture-conversations--step (method what)
  "Call METHOD, `undo' or `redo', on this conversation, and show a message.
WHAT is the keyword under which the result names the change."
  (contexture-conversations--call
   method (contexture-conversations--named-params)
   (lambda (result)
     (let ((change (contexture--name (plist-get result what)))
           (session (plist-get result :session)))
       (if (and (eq method 'undo) (equal change "rollback"))
           (contexture-conversations--report-unrolled result)
         (contexture--message
          "%s %s of conversation %s; %s" (if (eq method 'undo) "Undid" "Redid")
          (contexture-conversations--change-name change) session
          (if (eq method 'undo)
              (format "%s redoes it"
                      (contexture-conversations--key 'contexture-conversation-redo))
            (format "%s undoes it"
                    (contexture-conversations--key 'contexture-conversation-undo)))))))))

(defun contexture-conversations--change-name (method)
  "Return a phrase for the change that METHOD, a symbol or a string, made."
  (pcase (contexture--name method)
    ("prune-session" "leaving messages out")
    ("summarize-session" "shortening")
    ("rollback" "going back to a turn")
    ("restore" "the undo of several changes")
    (_ "the changes of the last turn")))

;;;###autoload
(defun contexture-conversation-undo-to (change)
  "Undo a change of the conversation, and all changes after it.
Newer messages stay.  CHANGE is the number of the change before it, or 0
for none."
  (interactive (list (contexture-conversations--read-revision)))
  (contexture-conversations--call
   'restore (append (contexture-conversations--named-params) (list :operation change))
   (lambda (result)
     (contexture--message "Undid these changes of conversation %s; %s undoes that"
              (plist-get result :session)
              (contexture-conversations--key 'contexture-conversation-undo)))))

(defun contexture-conversations--read-revision ()
  "Ask for a change of the view to undo; return the revision before it."
  (let* ((revisions (or (contexture--ask 'list-operations
                                         (contexture-conversations--named-params))
                        (user-error "Nothing was left out, shortened or taken back in this conversation")))
         (alist (mapcar (lambda (it)
                          (cons (format "%d %s" (plist-get it :operation)
                                        (contexture-conversations--change-name
                                         (plist-get it :method)))
                                it))
                        revisions))
         (default (or (car (cl-find :undo alist
                                    :key (lambda (it) (plist-get (cdr it) :next))))
                      (caar alist)))
         (name (completing-read
                (format-prompt "Undo back to before" default)
                (contexture--table
                 (mapcar #'car alist) 'contexture-revision
                 (contexture-sets--annotate
                  alist (lambda (it)
                          (format "after message %d, %s" (plist-get it :position)
                                  (contexture-conversations--time
                                   (plist-get it :created))))))
                nil t nil nil default)))
    (let ((revision
           (or (cdr (assoc name alist)) (user-error "No change was chosen"))))
      (or (plist-get (cadr (member revision revisions)) :operation) 0))))

;;;; Settings

(defconst contexture-conversations--more-settings
  `((:model :type string :doc "the model whose limit counts")
    (:strategy :values ,(mapcar #'car contexture--strategies)
               :doc "what chooses the messages that are sent"
               :default ,(intern (concat ":" (caar contexture--strategies))))
    ,@(cl-loop for (name doc) in
               '((:archive-pruned "messages that are left out or shortened become memories")
                 (:versioning "turns are kept, to go back to")
                 (:manage "notes are taken on the history"))
               collect (list name :type 'boolean :doc doc
                             :default (plist-get contexture--switches name)))
    (:template :type string :doc "the kind of notes")
    (:recent-runs :type integer :doc "number of turns from which notes are taken")
    (:passthrough-runs :type integer :doc "number of turns that are sent as they are")
    (:token-threshold :type integer :doc "tokens of history below which all is sent")
    (:tools :type names :doc "the tools that models may use")
    (:allowed-tools :type names :doc "the tools that need no approval"))
  "Descriptions of the settings that the server itself does not describe.")

(defun contexture-conversations--settings (result)
  "Return descriptions of all settings, with their values, as plists.
RESULT is that of the method `configure-session'."
  (append (plist-get result :settings)
          (cl-loop for (name . more) in contexture-conversations--more-settings
                   collect `(:name ,name :value ,(plist-get result name) ,@more))))

(defun contexture-conversations--setting-type (setting)
  "Return the type of SETTING, a description.
It is `boolean', `name', `names', `string', `integer' or `number'."
  (cond ((plist-get setting :type))
        ((plist-get setting :values) 'name)
        ((not (plist-get setting :least)) 'boolean)
        ((integerp (plist-get setting :least)) 'integer)
        (t 'number)))

(defun contexture-conversations--setting-text (setting)
  "Return the annotation of SETTING: value, default, range and description."
  (let ((show (lambda (value)
                (pcase (cons value (contexture-conversations--setting-type setting))
                  (`(t . boolean) "on")
                  (`(nil . boolean) "off")
                  (`(nil . names) "none")
                  (`(nil . ,_) (if (eq (plist-get setting :name) :max-tokens)
                                   "what the model takes"
                                 "not set"))
                  (`(,names . names) (mapconcat #'contexture--name names " "))
                  (_ (contexture--name value))))))
    (string-join
     (delq nil
           (list (funcall show (plist-get setting :value))
                 (unless (equal (plist-get setting :value)
                                (plist-get setting :default))
                   (format "default %s" (funcall show (plist-get setting :default))))
                 (when (plist-get setting :least)
                   (format "%s to %s" (plist-get setting :least)
                           (plist-get setting :most)))
                 (plist-get setting :doc)))
     ", ")))

(defun contexture-conversations--read-value (setting)
  "Ask for a value of SETTING; return it in the form for `configure-session'."
  (let* ((name (contexture--name (plist-get setting :name)))
         (value (plist-get setting :value))
         (prompt (format "%s (%s): " name (contexture-conversations--setting-text setting))))
    (pcase (contexture-conversations--setting-type setting)
      ('boolean (equal (completing-read prompt '("on" "off") nil t nil nil
                                        (if value "off" "on"))
                       "on"))
      ('name (intern (completing-read prompt (contexture--texts (plist-get setting :values))
                                      nil t nil nil
                                      (contexture--name value))))
      ('string (read-string prompt nil 'contexture-conversation-setting-history value))
      ('names
       (require 'contexture-conversation-turn)
       (vconcat (delete "" (completing-read-multiple
                            prompt contexture--server-tools nil t))))
      (type (contexture-conversations--number
             setting type
             (contexture--trim (read-string (concat (substring prompt 0 -2)
                                                    "; empty for the default): ")
                                            (and value (format "%s" value)) t)))))))

(defun contexture-conversations--number (setting type text)
  "Return the number in TEXT, the value of SETTING, whose type is TYPE.
If TEXT is empty, return what stands for the default."
  (let* ((name (contexture--name (plist-get setting :name)))
         (least (plist-get setting :least))
         (most (plist-get setting :most))
         (number (cond ((not (string-empty-p text))
                        (condition-case nil
                            (let ((read (read text)))
                              (if (eq type 'integer) (truncate read) (+ 0 read)))
                          (error (contexture--user-error "%s must be a number" name))))
                       ((plist-get setting :default))
                       (least 0)
                       (t -1))))
    (when (and least (not (string-empty-p text)) (not (<= least number most)))
      (contexture--user-error "%s must be from %s to %s" name least most))
    number))

;;;###autoload
(defun contexture-conversation-set (name value)
  "Set the setting NAME, a keyword, of the conversation to VALUE.
Completion shows the value, the default and the range of each setting."
  (interactive
   (let* ((settings (contexture-conversations--settings
                     (contexture--ask 'configure-session
                                      (contexture-conversations--params))))
          (alist (mapcar (lambda (it)
                           (cons (contexture--name (plist-get it :name)) it))
                         settings))
          (setting (cdr (assoc (completing-read
                                "Setting: "
                                (contexture--table
                                 (mapcar #'car alist) 'contexture-setting
                                 (contexture-sets--annotate
                                  alist #'contexture-conversations--setting-text))
                                nil t)
                               alist))))
     (unless setting
       (user-error "No setting was chosen"))
     (list (plist-get setting :name) (contexture-conversations--read-value setting))))
  (contexture-conversations--call
   'configure-session
   (append (contexture-conversations--params) (list name value))
   (lambda (result)
     (let ((setting (cl-find name (contexture-conversations--settings result)
                             :key (lambda (it) (plist-get it :name)))))
       (contexture--message "%s of conversation %s: %s" (contexture--name name)
                (plist-get result :session)
                (contexture-conversations--setting-text setting))))))

;;; Notes on the history, turn by turn

;; When a template takes notes on the history of a conversation, each turn has
;; an entry, even if notes were not needed or failed.  This lists them, the
;; newest first, and shows what the note-taker was asked and answered.

(defconst contexture-conversation-notes-buffer "*contexture: notes*"
  "Name of the buffer that lists the notes of a conversation.")

(defconst contexture-conversation-turn-notes-buffer "*contexture: notes of a turn*"
  "Name of the buffer that shows the notes of one turn.")

(defconst contexture-conversation-notes--limit 200
  "Maximum number of turns whose notes are listed.")

(defvar contexture-conversation-notes-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-conversation-notes-show)
    (define-key map (kbd "SPC") #'contexture-conversation-notes-show)
    (define-key map "f" #'contexture-conversation-notes-filter)
    map)
  "Keymap of `contexture-conversation-notes-mode'.")

(defvar-local contexture-conversation-notes--status nil
  "Status of the notes in this list, a keyword, or nil for all.")

(define-derived-mode contexture-conversation-notes-mode tabulated-list-mode "Notes"
  "Major mode for the notes of a conversation.
\\<contexture-conversation-notes-mode-map>\\[contexture-conversation-notes-show] shows \
what was asked and answered to take them for
the turn at point; \\[contexture-conversation-notes-filter] lists only notes \
with one status.

See Info node `(contexture)Notes'.

\\{contexture-conversation-notes-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq tabulated-list-format
        [("Turn" 6 contexture-conversation-notes--by-turn :right-align t)
         ("Kind" 14 t) ("Status" 15 t) ("Tokens" 18 nil)
         ("When" 16 t) ("Model or reason" 0 nil)]
        tabulated-list-sort-key nil)
  (setq-local revert-buffer-function #'contexture-conversation-notes--revert)
  (tabulated-list-init-header))

;;;###autoload
(defun contexture-conversation-notes (&optional conversation)
  "List the notes that were taken on the history of the conversation.
With a prefix argument, choose the conversation.  CONVERSATION is its id, or
nil for the current one."
  (interactive (list (if current-prefix-arg
                         (contexture-conversations--id
                          (contexture-conversations--read "Notes of"))
                       (contexture-conversations--here))))
  (with-current-buffer (get-buffer-create contexture-conversation-notes-buffer)
    (contexture-conversation-notes-mode)
    (setq contexture-conversations--shown conversation
          contexture-conversation-notes--status nil)
    (contexture-conversation-notes--revert))
  (pop-to-buffer contexture-conversation-notes-buffer))

(defun contexture-conversation-notes--revert (&rest _)
  "Fetch the notes of this buffer's conversation, and list them."
  (let ((buffer (current-buffer)))
    (contexture-conversations--call
     'list-notes
     (contexture-conversations--params :status contexture-conversation-notes--status
                                       :limit contexture-conversation-notes--limit
                                       :brief t)
     (lambda (views)
       (contexture--with-live-buffer buffer
         (setq tabulated-list-entries
               (mapcar (lambda (view) (list view (contexture-conversation-notes--row view)))
                       views)
               header-line-format nil)
         (tabulated-list-init-header)
         (tabulated-list-print t)
         (unless tabulated-list-entries
           (let ((inhibit-read-only t))
             (insert (if contexture-conversation-notes--status
                         "There are no notes with this status; f lists others.\n"
                       "No notes were taken in this conversation yet; in its buffer, \
C-c C-t turns them on.\n")))))))))

(defun contexture-conversation-notes--row (view)
  "Return the columns of the list for VIEW, the notes of one turn."
  (let ((status (contexture--name (plist-get view :status))))
    (vector (format "%s" (or (plist-get view :turn) ""))
            (contexture--visible (or (plist-get view :template) ""))
            (propertize status 'face (if (equal status "failed") 'error 'default))
            (let ((before (plist-get view :tokens-before))
                  (after (plist-get view :tokens-after)))
              (cond ((and before after)
                     (contexture-conversations--many-of before after))
                    (before (contexture-conversations--many before "token"))
                    (t "")))
            (if (plist-get view :created)
                (contexture-conversations--time (plist-get view :created)) "")
            (let ((reason (plist-get view :reason)))
              (if (and reason (not (equal reason "")))
                  (concat (let ((step (plist-get view :step)))
                            (if step (concat (contexture--name step) ": ") ""))
                          (contexture--visible reason))
                (contexture--visible (or (plist-get view :model) "")))))))

(defun contexture-conversation-notes--by-turn (one other)
  "Return non-nil if ONE, an entry of the list, is of an earlier turn than OTHER."
  (< (or (plist-get (car one) :turn) 0) (or (plist-get (car other) :turn) 0)))

(defun contexture-conversation-notes-filter (status)
  "List only the notes with STATUS, such as \"failed\".
If STATUS is empty or \"all\", list all."
  (interactive
   (list (completing-read "Status: " '("all" "managed" "below-threshold" "disabled"
                                       "failed")
                          nil t nil nil "all")))
  (setq contexture-conversation-notes--status
        (unless (member status '("all" "")) (intern (concat ":" status))))
  (contexture-conversation-notes--revert))

;;;; The notes of one turn

(defun contexture-conversation-notes-show ()
  "Show the notes at point, with the request that asked for them."
  (interactive)
  (let ((view (or (tabulated-list-get-id) (user-error "There are no notes at point"))))
    (contexture-conversations--call
     'list-notes (list :view (plist-get view :id) :limit 1)
     (lambda (views) (contexture-conversation-notes--show (or (car views) view))))))

(defun contexture-conversation-notes--show (view)
  "Show VIEW, the notes of one turn, in their own buffer."
  (with-current-buffer (get-buffer-create contexture-conversation-turn-notes-buffer)
    (let ((inhibit-read-only t))
      (special-mode)
      (setq-local word-wrap t)
      (erase-buffer)
      (contexture-conversation-notes--insert view)
      (contexture--shorten-lines "in it")
      (contexture--show-hidden)
      (goto-char (point-min)))
    (pop-to-buffer (current-buffer))))

(defun contexture-conversation-notes--insert (view)
  "Insert all data of VIEW: first the short values, then the long texts.
The request comes last."
  (let (texts)
    (cl-loop for (key value) on view by #'cddr do
             (let ((name (capitalize (string-replace "-" " " (contexture--name key)))))
               (cond ((null value))
                     ((and (stringp value)
                           (or (string-search "\n" value) (> (length value) 80)))
                      (if (eq key :payload)
                          (setq texts (append texts (list (cons name value))))
                        (push (cons name value) texts)))
                     (t (insert (format "%-17s %s\n" name
                                        (contexture-conversation-notes--value key value)))))))
    (pcase-dolist (`(,name . ,text) texts)
      (insert "\n" (propertize name 'face 'bold) "\n\n" (contexture--trim-right text) "\n"))))

(defun contexture-conversation-notes--value (key value)
  "Return VALUE, that of KEY in the notes of a turn, as text."
  (cond ((and (eq key :created) (numberp value)) (contexture-conversations--time value))
        ((eq value t) "yes")
        ((keywordp value) (contexture--name value))
        ((eq key :path) (contexture--visible (contexture--abbreviate value)))
        ((listp value) (mapconcat (lambda (it) (contexture--name it)) value ", "))
        (t (contexture--format "%s" value))))

;;; Import conversations

;; Imports sessions: a JSON export of Contexture, or what other agents
;; recorded.  For the latter, the command first shows what there is, and
;; imports it only if the user agrees.

(defconst contexture-import-buffer "*contexture: import*"
  "Name of the buffer that shows what would be imported.")

(defun contexture-import--project ()
  "Return the root of this buffer's project, or else the default directory."
  (expand-file-name (or (contexture--project-root) default-directory)))

(defun contexture-import--places ()
  "Return the existing folders in which agents record sessions of this project."
  (let* ((project (contexture-import--project))
         (name (replace-regexp-in-string "[^[:alnum:]]" "-" (directory-file-name project)))
         (claude (or (getenv "CLAUDE_CONFIG_DIR") "~/.claude"))
         (codex (or (getenv "CODEX_HOME") "~/.codex")))
    (seq-filter #'file-directory-p
                (list (expand-file-name ".specstory/history" project)
                      (expand-file-name name (expand-file-name "projects" claude))
                      (expand-file-name "sessions" codex)))))

(defun contexture-import--read ()
  "Ask for a file or folder to import.
By default, it is this buffer's if that has a saved conversation, else one with
recorded sessions."
  (let ((place (if (contexture-saved--p) buffer-file-name
                 (car (contexture-import--places)))))
    (read-file-name "Import conversations from file or folder: "
                    (and place (if (file-directory-p place) (file-name-as-directory place)
                                 (file-name-directory place)))
                    (and place (contexture--abbreviate place)) t nil)))

;;;###autoload
(defun contexture-import-sessions (file &optional name)
  "Import the conversation or conversations in FILE.
FILE is what `contexture-conversation-export' wrote, a session that Claude Code,
Codex or SpecStory recorded, or a folder with such recordings.  What was
exported as Markdown is opened as the same conversation; you are told which of
its messages were edited in the file.  You see what recordings contain before
any of it is imported.  With a prefix argument, make a new conversation of an
export, with the name NAME.  Nothing is replaced: a name that is taken gets a
number."
  (interactive
   (list (contexture-import--read)
         (and current-prefix-arg (read-string "Name of the conversation: " nil
                                              'contexture-conversation-names-history))))
  (let ((file (expand-file-name file)))
    ;; Reading a pipe would wait without end.
    (unless (and (file-readable-p file)
                 (or (file-regular-p file) (file-directory-p file)))
      (contexture--user-error "Cannot read the file %s" (contexture--abbreviate file)))
    (let ((text (and (not (file-directory-p file))
                     (member (file-name-extension file) '("json" "md" "markdown" "txt"))
                     (with-temp-buffer
                       (let ((coding-system-for-read 'utf-8-unix))
                         (insert-file-contents file))
                       (and (or (equal (file-name-extension file) "json") (contexture-saved--p))
                            (buffer-string))))))
      (if text (contexture-saved--open text (unless (string-blank-p (or name "")) name))
        (contexture-import--preview file)))))

;;;; Conversations in files

(defun contexture-saved--p ()
  "Return non-nil if this buffer has a conversation that was exported as Markdown."
  (save-excursion
    (goto-char (point-min))
    (re-search-forward "\\`# .*\n+Conversation ses-[0-9]+, begun " nil t)))

(defun contexture-saved--open (text name &optional then)
  "Open the conversation that was exported as TEXT, or a new one called NAME.
Then call THEN, if it is non-nil, in its buffer."
  (contexture-conversations--call
   'open-session (contexture--plist :text text :name name)
   (lambda (entry)
     (contexture-conversations--announce entry "import-session")
     (unless (string-prefix-p "{" text)
       (contexture-conversation (plist-get entry :session)))
     (when then
       (require 'contexture-conversation-view)
       (with-current-buffer (contexture-conversation--buffer (plist-get entry :session))
         (if contexture-conversation--loaded (funcall then)
           (push then contexture-conversation--once-loaded))))
     (contexture--message
      "%s conversation %s (%s)%s"
      (if (plist-get entry :created-now) "Imported" "Opened")
      (plist-get entry :session) (contexture-conversations--size entry)
      (if-let* ((edited (plist-get entry :edited)))
          (format "; it keeps its own text of %s, which the file has otherwise"
                  (contexture--some-of edited))
        "")))))

(defun contexture-saved--branch (name)
  "Branch from the heading at point, of an exported conversation, as NAME."
  (let ((number (save-excursion
                  (end-of-line)
                  (if (and (contexture-saved--p)
                           (re-search-backward "^## [[:alpha:]]+ (msg-\\([0-9]+\\), " nil t))
                      (string-to-number (match-string 1))
                    (user-error "Go to a message, in a conversation or in its file")))))
    (contexture-saved--open
     (buffer-substring-no-properties (point-min) (point-max)) nil
     (lambda ()
       (let ((message (cl-find-if (lambda (it)
                                    (<= (or (contexture-conversation--number
                                             (contexture-conversation--message-id it))
                                            0)
                                        number))
                                  contexture-conversation--messages)))
         (goto-char (if message (contexture-conversation--message-from message) (point-min)))
         (contexture-conversation-branch name))))))

;;;; Recordings of other agents

(defun contexture-import--preview (file)
  "Show which recordings FILE has, and import them if the user agrees.
FILE is a file or a folder."
  (contexture--message "Looking at %s..." (contexture--abbreviate file))
  (let ((params (contexture-import--params file))) ; those of this buffer's project
    (contexture-conversations--call
     'import-sessions (append params '(:dry-run t))
     (apply-partially #'contexture-import--previewed file params))))

(defun contexture-import--previewed (file params found)
  "Show what was FOUND in FILE, and import it with PARAMS if the user agrees."
  (with-current-buffer (get-buffer-create contexture-import-buffer)
    (let ((inhibit-read-only t))
      (erase-buffer)
      (dolist (file (plist-get found :files))
        (contexture-import--insert file))
      (goto-char (point-min)))
    (special-mode)
    (display-buffer (current-buffer)))
  (if (zerop (plist-get found :messages))
      (contexture--message "There is nothing new to import in %s" (contexture--abbreviate file))
    (when (contexture--y-or-n-p
           (format "Import %s (%s)? "
                   (contexture--count (plist-get found :messages) "message")
                   (contexture--count (plist-get found :sessions)
                                      "new conversation")))
      (contexture--message "Importing...")
      (contexture-conversations--call
       'import-sessions params
       (lambda (done)
         (contexture--message "Imported %s, new conversations: %d"
                              (contexture--count (plist-get done :messages)
                                                 "message")
                              (plist-get done :sessions)))))))

(defun contexture-import--params (file)
  "Return the parameters for importing FILE.
The folder of Codex has the sessions of all projects, so import only those
of this project from there."
  (let ((codex (expand-file-name "sessions" (or (getenv "CODEX_HOME") "~/.codex"))))
    (append (list :paths (list file))
            (when (equal (directory-file-name file) (directory-file-name codex))
              (list :project (directory-file-name (contexture-import--project)))))))

(defun contexture-import--insert (file)
  "Insert lines about FILE, an entry in the result of `import-sessions'."
  (insert (format "%-9s  %s\n"
                  (substring (symbol-name (plist-get file :state)) 1)
                  (contexture--visible (or (plist-get file :session)
                                          (plist-get file :error) ""))))
  (insert (format "           %s\n"
                  (contexture--visible (contexture--abbreviate (plist-get file :path)))))
  (when-let* ((started (plist-get file :started)))
    (insert (format-time-string "           %F %R" started)
            (format ", %s, %s\n"
                    (contexture--count (plist-get file :messages) "message")
                    (contexture--count (plist-get file :tokens) "token"))))
  (dolist (entry (plist-get file :left-out))
    (insert (format "           left out or changed: %d %s (%s)\n" (plist-get entry :count)
                    (contexture--visible (plist-get entry :kind))
                    (contexture--visible (plist-get entry :reason))))))

;;; Act on items and conversations with Embark

;; Actions for the package Embark, on an item or a conversation that you are
;; choosing in the minibuffer.  `contexture--table' loads this file if Embark
;; is loaded; loading it needs nothing of Embark.

(defvar embark-keymap-alist)

;; The functions are not commands: Embark calls them with the chosen name.

;;;; Items

(defun contexture-embark--item (name)
  "Return the item with the unique NAME in this buffer's context."
  (or (cdr (assoc name (contexture-sets--name-items
                        (reverse (contexture--ask
                                  'list-items
                                  (append (contexture--context-params
                                           (contexture-current-context))
                                          '(:brief t)))))))
      (contexture--user-error "The context no longer has an item %s" name)))

(defun contexture-embark-visit (name)
  "Go to the place that the item with NAME came from."
  (let ((metadata (plist-get (contexture-embark--item name) :metadata)))
    (contexture-list-item--visit
     (or (contexture-list-item--source-buffer metadata)
         (contexture--user-error "%s is gone" (contexture--place metadata)))
     metadata)))

(defun contexture-embark-remove (name)
  "Remove the item with NAME; `contexture-undo' brings it back."
  (let ((item (contexture-embark--item name)))
    (contexture-remove (list (plist-get item :id)) name (plist-get item :manager))))

(defun contexture-embark-keep-copy (name)
  "Freeze the item with NAME: it no longer follows its source."
  (contexture-keep-copy (contexture-embark--item name)))

(defun contexture-embark-follow (name)
  "Let the item with NAME follow its source again, as before it was frozen."
  (contexture-keep-copy (contexture-embark--item name) t))

(defvar contexture-embark-item-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-embark-visit)
    (define-key map "o" #'contexture-embark-visit)
    (define-key map "x" #'contexture-embark-remove)
    (define-key map "Z" #'contexture-embark-keep-copy)
    (define-key map "F" #'contexture-embark-follow)
    map)
  "Keymap with Embark's actions on an item.")

;;;; Conversations

(defun contexture-embark--session (name)
  "Return the id of the conversation with the unique NAME."
  (if-let* ((entry (assoc name (contexture-conversations--name-entries
                                (contexture--ask 'list-sessions nil)))))
      (contexture-conversations--id (cdr entry))
    (contexture--user-error "There is no conversation %s" name)))

(defun contexture-embark-talk (name)
  "Talk in the conversation with NAME."
  (contexture-conversation name))

(defun contexture-embark-dashboard (name)
  "Show how full the conversation with NAME is."
  (contexture-dashboard (contexture-embark--session name)))

(defun contexture-embark-transcript (name)
  "Show the transcript of the conversation with NAME."
  (contexture-conversation-transcript (contexture-embark--session name)))

(defun contexture-embark-explain (name)
  "Explain the last window of the conversation with NAME, part by part."
  (contexture-explain 1 (contexture-embark--session name)))

(defun contexture-embark-export (name)
  "Show the conversation with NAME as Markdown, for you to save."
  (contexture-conversation-export (contexture-embark--session name)))

(defun contexture-embark-delete (name)
  "Delete the conversation with NAME.
`contexture-conversation-bring-back' brings it back."
  (contexture-conversation-delete (contexture-embark--session name)))

(defvar contexture-embark-conversation-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-embark-talk)
    (define-key map "o" #'contexture-embark-talk)
    (define-key map "v" #'contexture-embark-dashboard)
    (define-key map "t" #'contexture-embark-transcript)
    (define-key map "e" #'contexture-embark-explain)
    (define-key map "x" #'contexture-embark-export)
    (define-key map "d" #'contexture-embark-delete)
    map)
  "Keymap with Embark's actions on a conversation.")

;;;; Offering the actions

(defun contexture-embark--offer ()
  "Have Embark, which is loaded, offer the actions on items and conversations."
  (add-to-list 'embark-keymap-alist '(contexture-item . contexture-embark-item-map))
  (add-to-list 'embark-keymap-alist '(contexture-conversations . contexture-embark-conversation-map)))

(provide 'contexture-conversations)
;;; contexture-conversations.el ends here
