;;; contexture-session.el --- Conversations  -*- lexical-binding: t; -*-

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
(require 'contexture-list)
(eval-when-compile (require 'subr-x))

(defvar contexture-repl--tools)
(defvar contexture-repl--session)

;;; Open and name conversations

(defgroup contexture-session nil
  "Conversations with a model."
  :group 'contexture
  :prefix "contexture-session-")

(defface contexture-session-warning '((t :inherit warning))
  "Face of the warning that a conversation fills most of its model's window."
  :group 'contexture-session)

(defvar contexture-session-history nil
  "Minibuffer history of names of conversations.")

(defvar-local contexture-session--shown nil
  "Id of the conversation that this buffer shows; nil means the current one.")

(defun contexture-session--here ()
  "Return the id of the conversation that this buffer shows, or nil.
Nil means the current conversation."
  (or contexture-session--shown
      (plist-get (bound-and-true-p contexture-repl--session) :id)))

(defconst contexture-session--topics
  '(session-changed context-pruned context-summarized checkpoint-created)
  "Topics of notifications about conversations.")

;;;; Phrases

(defun contexture-session--size (session)
  "Return a phrase for the messages and tokens of SESSION.
SESSION is the server's entry for a conversation."
  (format "%s, %s"
          (contexture-session--many (plist-get session :messages) "message")
          (contexture-session--many (plist-get session :tokens) "token")))

(defun contexture-session--many (number noun)
  "Return NUMBER and NOUN, with an s unless NUMBER is 1, as text.
There are commas between the thousands.  NUMBER may be nil for 0."
  (format "%s %s%s" (contexture--number number) noun
          (if (eql number 1) "" "s")))

(defun contexture-session--many-of (before after)
  "Return a phrase for BEFORE tokens that became AFTER tokens."
  (if (eql before after)
      (contexture-session--many after "token")
    (format "%s → %s" (contexture--number before)
            (contexture-session--many after "token"))))

(defun contexture-session--time (seconds)
  "Return SECONDS, a Unix time, as text: the time of today, or date and time."
  (format-time-string
   (if (equal (format-time-string "%F") (format-time-string "%F" seconds))
       "%R" "%F %R")
   seconds))

(defun contexture-session--key (command)
  "Return the key of COMMAND, or else how to call it by name, as text."
  (substitute-command-keys (format "\\[%s]" command)))

;;;; Calls

(defun contexture-session--params (&rest plist)
  "Return PLIST as parameters for the conversation that this buffer shows.
Leave out entries that are nil."
  (append (contexture--plist :session (contexture-session--here))
          (apply #'contexture--plist plist)))

(defun contexture-session--call (method params success)
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
     :error (apply-partially answered #'contexture-session--show-error))))

(defun contexture-session--show-error (problem)
  "Show PROBLEM, the error of a call, with a command that helps if there is one."
  (contexture--message "Contexture: %s" (contexture-session--error-text problem)))

(defun contexture-session--error-text (problem)
  "Return the message for PROBLEM, the error of a call.
If no conversation is open, it names the command that opens one."
  (if (contexture-session--none-open-p problem)
      (format "no conversation is open; %s opens one"
              (contexture-session--key 'contexture-session-open))
    (contexture--error-text problem)))

(defun contexture-session--none-open-p (problem)
  "Return non-nil if PROBLEM, an error, says that no conversation is open."
  (let ((data (plist-get problem :data)))
    (and (eq (plist-get data :kind) :no-such-session)
         (null (plist-get data :session))))) ; the call named none

(defun contexture-session--announce (session method)
  "Tell the functions that watch notifications that METHOD changed SESSION.
SESSION is an entry of the server, which does not announce such changes."
  (run-hook-with-args 'contexture-notification-functions 'session-changed
                      (list :session (plist-get session :session)
                            :session-id (plist-get session :id)
                            :method method
                            :messages (plist-get session :messages))))

;;;; Completion

(defun contexture-session--name-entries (sessions)
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

(defun contexture-session--choose (prompt sessions &optional default new)
  "Ask the user with PROMPT for one of SESSIONS, entries of the server.
DEFAULT is the id of one.  Return the chosen entry.  If NEW is non-nil, allow
a new name, too; then return that."
  (let* ((alist (contexture-session--name-entries sessions))
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
                    (contexture-session--table (mapcar #'car alist) known)
                    nil (not new) nil 'contexture-session-history default)))))
    (or (gethash name known)
        (if (and new (not (string-blank-p name))) (string-trim name)
          (user-error "No conversation was chosen")))))

(defun contexture-session--table (names known)
  "Return a completion table of NAMES of conversations.
KNOWN is a hash table from each name to the server's entry."
  (contexture--table
   names 'contexture-session
   (lambda (name)
     (if-let* ((session (gethash name known)))
         (concat "  " (propertize " " 'display '(space :align-to 32))
                 (if-let* ((project (plist-get session :project)))
                     (concat (contexture--project-label project) ", ")
                   "")
                 (format "%s, %s%s" (contexture-session--size session)
                         (contexture-sets--age
                          (or (plist-get session :deleted)
                              (plist-get session :updated)))
                         (cond ((plist-get session :deleted) " deleted")
                               ((plist-get session :current) ", current")
                               (t ""))))
       ""))))

(defun contexture-session--read (prompt &optional new)
  "Ask with PROMPT for a conversation; return its entry.
The default is that of this buffer, or else the current one.  If NEW is
non-nil, there is no default; allow a new name, too, and return that."
  (let ((sessions (contexture--ask 'list-sessions nil)))
    (unless (or sessions new)
      (contexture--user-error "There is no conversation yet; %s starts one"
                  (contexture-session--key 'contexture-session-new)))
    (contexture-session--choose
     prompt sessions
     (unless new
       (or (contexture-session--here)
           (plist-get (cl-find-if (lambda (it) (plist-get it :current)) sessions)
                      :id)))
     new)))

(defun contexture-session--id (session)
  "Return the id of SESSION if it is an entry, else SESSION, an id or a name."
  (if (stringp session) session (plist-get session :id)))

(defun contexture-session--name (session)
  "Return the name of SESSION if it is an entry, else SESSION, a string."
  (if (stringp session) session (plist-get session :session)))

;;;; Opening

;;;###autoload
(defun contexture-session-open (session &optional manager)
  "Make SESSION the current conversation; start it if it does not exist.
SESSION is a name.  A new conversation has the items of this buffer's
project and those for everywhere, as with `contexture-repl'.  With a prefix
argument, it has all items of this buffer's context, MANAGER, which is a name
or a list of layers."
  (interactive
   (list (contexture-session--name (contexture-session--read "Open conversation" t))
         (and current-prefix-arg (contexture-current-context))))
  (contexture--with-layers
   (lambda ()
     (let ((manager (or manager (contexture--conversation-context))))
       (contexture-session--call
        'open-session
        (contexture--plist :name session
                           (if (listp manager) :managers :manager) manager
                           :project (contexture--project-root))
        #'contexture-session--tell-opened)))))

(defun contexture-session--send-no-memories (session)
  "Have SESSION, an entry of a new conversation, send no memories by itself.
The user would not see them before they are sent; /memories shows them."
  (contexture-session--call
   'configure-session (list :session (plist-get session :id) :grounding-memories 0) #'ignore))

(defun contexture-session--tell-opened (session)
  "Tell the user that SESSION, an entry, is the current conversation now.
Also tell the functions that watch notifications."
  (when (plist-get session :created-now)
    (contexture-session--send-no-memories session))
  (contexture-session--announce session "open-session")
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
             (contexture-session--size session))))

;;;###autoload
(defun contexture-session-new (&optional name manager)
  "Start a conversation called NAME, and make it the current one.
If NAME is empty, the server chooses a name; if there is a conversation
called NAME, open that.  MANAGER is as for `contexture-session-open'."
  (interactive
   (list (read-string "Start conversation (empty for an automatic name): " nil
                      'contexture-session-history)
         (and current-prefix-arg (contexture-current-context))))
  (let ((name (string-trim (or name ""))))
    (contexture-session-open (unless (string-empty-p name) name) manager)))

;;;###autoload
(defun contexture-session-switch (session)
  "Make SESSION the current conversation.
SESSION is the id or the name of one that exists."
  (interactive (list (contexture-session--id
                      (contexture-session--read "Switch to conversation"))))
  (contexture-session--call
   'open-session (list :name session :create nil)
   (lambda (entry)
     (contexture-session--announce entry "open-session")
     (contexture--message "Conversation %s is open (%s)" (plist-get entry :session)
              (contexture-session--size entry)))))

;;;###autoload
(defun contexture-session-rename (session name)
  "Rename a conversation to NAME.
SESSION is its id or its name."
  (interactive
   (let* ((session (contexture-session--read "Rename conversation"))
          (old (contexture-session--name session)))
     (list (contexture-session--id session)
           (read-string (contexture--format "Rename %s to: " old) nil
                        'contexture-session-history old))))
  (when (string-blank-p name)
    (user-error "A conversation needs a name"))
  (contexture-session--call
   'rename-session (list :session session :name (string-trim name))
   (lambda (entry)
     (contexture--message "The conversation is now called %s" (plist-get entry :session)))))

;;;; Deleting and bringing back

;;;###autoload
(defun contexture-session-delete (session)
  "Delete a conversation; `contexture-session-restore' brings it back.
SESSION is its id or its name."
  (interactive (list (contexture-session--id
                      (contexture-session--read "Delete conversation"))))
  (contexture-session--call
   'delete-session (list :session session)
   (lambda (entry)
     (contexture--message "Deleted conversation %s (%s); %s brings it back"
              (plist-get entry :session) (contexture-session--size entry)
              (contexture-session--key 'contexture-session-restore)))))

;;;###autoload
(defun contexture-session-restore (session)
  "Bring back a deleted conversation.
SESSION is its id or its name."
  (interactive
   (let ((deleted (cl-remove-if-not
                   (lambda (it) (plist-get it :deleted))
                   (contexture--ask 'list-sessions '(:deleted t)))))
     (unless deleted
       (user-error "There are no deleted conversations"))
     (list (contexture-session--id
            (contexture-session--choose "Bring back conversation" deleted)))))
  (contexture-session--call
   'restore-session (list :session session)
   (lambda (entry)
     (contexture--message "Conversation %s is back (%s); %s switches to it"
              (plist-get entry :session) (contexture-session--size entry)
              (contexture-session--key 'contexture-session-switch)))))

;;;; Keys

;;;###autoload (autoload 'contexture-session-map "contexture-session" nil nil 'keymap)
(defvar contexture-session-map
  (let ((map (make-sparse-keymap)))
    (define-key map "o" #'contexture-session-open)
    (define-key map "n" #'contexture-session-new)
    (define-key map "s" #'contexture-session-switch)
    (define-key map "r" #'contexture-session-rename)
    (define-key map "d" #'contexture-session-delete)
    (define-key map "D" #'contexture-session-restore)
    (define-key map "f" #'contexture-session-fork)
    (define-key map "/" #'contexture-session-search)
    (define-key map "t" #'contexture-session-transcript)
    (define-key map "x" #'contexture-session-export)
    (define-key map "i" #'contexture-session-import)
    (define-key map "a" #'contexture-session-add-message)
    (define-key map "A" #'contexture-session-add-region)
    (define-key map "c" #'contexture-session-checkpoint)
    (define-key map "b" #'contexture-session-rollback)
    (define-key map "B" #'contexture-session-undo-rollback)
    (define-key map "p" #'contexture-session-prune)
    (define-key map "S" #'contexture-session-summarize)
    (define-key map "u" #'contexture-session-undo)
    (define-key map "U" #'contexture-session-redo)
    (define-key map "R" #'contexture-session-restore-revision)
    (define-key map "C" #'contexture-session-configure)
    (define-key map "v" #'contexture-dashboard)
    (define-key map "V" #'contexture-session-views)
    (define-key map "e" #'contexture-explain)
    (define-key map "?" #'contexture-session-menu)
    map)
  "Keymap of the commands for conversations.
It is on `n' in `contexture-command-map'.")
(fset 'contexture-session-map contexture-session-map)

;;; A conversation in the mode line

;; `contexture-session-mode-line-mode' shows in the mode line whether the
;; current conversation is idle, active or nearly full.  It listens to a running
;; server and starts none; nothing polls.

(defvar contexture-session-line--session nil
  "Id of the conversation whose count the mode line shows, or nil.")

(defvar contexture-session-line--asking nil
  "Non-nil during a call that asks which conversation is current.
It is `again' if a conversation has changed meanwhile.")

;;;###autoload
(define-minor-mode contexture-session-mode-line-mode
  "Show the state of the current conversation in the mode line.
It is \"ses:idle\" while nothing would be sent.  Then it has the tokens that
would be sent now and the most that are sent, as in \"ses:1,234/8,192\".
It ends with \"!\", in the face
`contexture-session-warning', if the messages fill more than 80 percent
of the limit.  A tilde says that the server is still counting.  If no
conversation is open, the mode line shows nothing."
  :global t
  :group 'contexture-session
  :lighter (:eval (contexture-session-line--lighter))
  (setq contexture-session-line--session nil
        contexture-session-line--asking nil)
  (if contexture-session-mode-line-mode
      (progn
        (contexture-watch #'contexture-session-line--changed
                          contexture-session--topics)
        (add-hook 'contexture-connected-hook #'contexture-session-line--ask)
        (add-hook 'contexture-disconnected-hook #'contexture-session-line--forget)
        (contexture-session-line--ask))
    (contexture-unwatch #'contexture-session-line--changed)
    (remove-hook 'contexture-connected-hook #'contexture-session-line--ask)
    (remove-hook 'contexture-disconnected-hook #'contexture-session-line--forget)
    (contexture-count--unfollow 'mode-line))
  (force-mode-line-update t))

(defun contexture-session-state (stats)
  "Return `idle', `active' or `warning', as STATS say.
STATS is a result of the method `session-stats' or `count-window'."
  (cond ((plist-get stats :needs-pruning) 'warning)
        ((> (or (plist-get stats :tokens) 0) 0) 'active)
        (t 'idle)))

(defun contexture-session-line--lighter ()
  "Return the text for the mode line, or nil if there is nothing to show.
It is a list if it has a face: the mode line takes one string as a whole in
one face."
  (when-let* ((count (contexture-count--of contexture-session-line--session))
              (short (contexture-count--short contexture-session-line--session)))
    (pcase (contexture-session-state count)
      ('idle " ses:idle")
      ('active (concat " ses:" short))
      ('warning (list " " (propertize (concat "ses:" short "!")
                                      'face 'contexture-session-warning))))))

(defun contexture-session-line--changed (method _params)
  "Ask for the current conversation again if METHOD is about conversations."
  (when (memq method contexture-session--topics)
    (contexture-session-line--ask)))

(defun contexture-session-line--ask ()
  "Ask the server, if one is connected, which conversation is the current one.
During such a call, only note to ask again."
  (cond (contexture-session-line--asking
         (setq contexture-session-line--asking 'again))
        ((contexture-running-p)
         (setq contexture-session-line--asking t)
         (contexture-request-async
          'current-session nil
          :success #'contexture-session-line--answered
          :error (lambda (_) (contexture-session-line--answered nil))))))

(defun contexture-session-line--answered (session)
  "Show the token count of SESSION, an entry, or nothing if it is nil.
SESSION is what the server says is the current conversation."
  (let ((again (eq contexture-session-line--asking 'again)))
    (setq contexture-session-line--asking nil)
    (when contexture-session-mode-line-mode
      (contexture-session-line--follow (plist-get session :id))
      (when again
        (contexture-session-line--ask)))))

(defun contexture-session-line--follow (id)
  "Show the token count of the conversation with ID, or nothing if ID is nil."
  (setq contexture-session-line--session id)
  (if id
      (contexture-count--follow id 'mode-line #'contexture-session-line--redraw)
    (contexture-count--unfollow 'mode-line))
  (contexture-session-line--redraw))

(defun contexture-session-line--redraw ()
  "Redraw all mode lines."
  (force-mode-line-update t))

(defun contexture-session-line--forget ()
  "Show nothing in the mode line, since the server is gone."
  (contexture-session-line--follow nil))

;;; Read, search and export conversations

;; Shows conversations: the transcript of one, the hits of a search through
;; all, and exports, which `contexture-session-import' reads again.

(defface contexture-session-role '((t :inherit font-lock-keyword-face :weight bold))
  "Face of the role of a message in a transcript."
  :group 'contexture-session)

(defface contexture-session-out-of-view '((t :inherit shadow))
  "Face of messages that are no longer in view of the model."
  :group 'contexture-session)

(defface contexture-session-heading '((t :inherit bold :underline t))
  "Face of headings in buffers that show conversations."
  :group 'contexture-session)

;;;; Messages

(defun contexture-session--message-heading (message)
  "Return the line above MESSAGE in a transcript: role, id, time and so on."
  (concat
   (propertize (contexture--name (plist-get message :role))
               'face 'contexture-session-role)
   (propertize
    (concat
     (format "  %s, %s, %s" (plist-get message :id)
             (contexture-session--time (plist-get message :timestamp))
             (contexture-session--many (plist-get message :tokens) "token"))
     (if-let* ((phase (plist-get message :phase)))
         (concat ", " (contexture--name phase))
       "")
     (if-let* ((id (plist-get message :tool-call-id)))
         (concat ", answers " (contexture--visible id))
       "")
     (if (plist-get message :pinned) ", pinned" "")
     (if (plist-get message :in-view) "" ", not in view"))
    'face 'shadow)))

(defun contexture-session--message-text (message)
  "Return MESSAGE as text for a transcript, with its heading."
  (let ((body (concat
               (string-trim-right (plist-get message :content))
               (mapconcat (lambda (call)
                            (format "\n→ %s %s"
                                    (contexture--visible (plist-get call :name))
                                    (plist-get call :arguments)))
                          (plist-get message :tool-calls) ""))))
    (propertize
     (concat (contexture-session--message-heading message) "\n"
             (replace-regexp-in-string
              "^\\(?:.\\)" "  \\&"
              (if (plist-get message :in-view) body
                (propertize body 'face 'contexture-session-out-of-view)))
             "\n\n")
     'contexture-session-message message)))

;;;; The transcript

(defvar contexture-session-transcript-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "n" #'contexture-session-transcript-next)
    (define-key map "p" #'contexture-session-transcript-previous)
    (define-key map "P" #'contexture-session-transcript-pin)
    (define-key map "w" #'contexture-session-transcript-copy)
    (define-key map "l" #'contexture-session-transcript-toggle-log)
    (define-key map "a" #'contexture-session-add-message)
    (define-key map "v" #'contexture-dashboard)
    (define-key map "?" #'describe-mode)
    map)
  "Keymap of `contexture-session-transcript-mode'.")

(defvar-local contexture-session--view :conversation
  "Messages in this transcript: `:conversation', or `:log' for all.
`:conversation' leaves out what was rolled back.")

(define-derived-mode contexture-session-transcript-mode special-mode "Transcript"
  "Major mode for the transcript of a conversation.
\\<contexture-session-transcript-mode-map>\
\\[contexture-session-transcript-next] and \
\\[contexture-session-transcript-previous] go from message to message,
\\[contexture-session-transcript-pin] pins the one at point, so that it is
never left out, and \\[contexture-session-transcript-copy] copies it.
\\[contexture-session-transcript-toggle-log] also shows what was rolled back,
and \\[revert-buffer] asks the server again.

\\{contexture-session-transcript-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq-local revert-buffer-function #'contexture-session-transcript--revert
              word-wrap t))

;;;###autoload
(defun contexture-session-transcript (session &optional message)
  "Show the transcript of a conversation, by default the current one.
With a prefix argument, choose the conversation.  SESSION is its id, or nil
for the current one.  Point goes to MESSAGE, an id, or to the last message."
  (interactive
   (list (if current-prefix-arg
             (contexture-session--id (contexture-session--read "Transcript of"))
           contexture-session--shown)))
  (if session
      (contexture-session-transcript--fetch session :conversation message)
    (contexture-session--call
     'current-session nil
     (lambda (entry)
       (contexture-session-transcript--fetch (plist-get entry :id) :conversation
                                             message)))))

(defun contexture-session-transcript--fetch (session view &optional message buffer)
  "Fetch the messages of SESSION, an id, in VIEW, and show the transcript.
VIEW is a value of `contexture-session--view'.  Point goes to MESSAGE, an id.
BUFFER, if given, is the transcript's buffer, to be updated."
  (contexture-session--call
   'session-stats (list :session session)
   (lambda (stats)
     (contexture-request-pages
      'get-messages (list :session session :view view)
      :success (lambda (messages)
                 (contexture-session-transcript--show session stats view messages
                                                      message buffer))
      :error #'contexture-session--show-error))))

(defun contexture-session-transcript--show (session stats view messages message buffer)
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
        (unless (derived-mode-p 'contexture-session-transcript-mode)
          (contexture-session-transcript-mode))
        (setq contexture-session--shown session
              contexture-session--view view)
        (contexture-session-transcript--insert stats messages)
        (contexture-session-transcript--goto message))
      (unless again
        (pop-to-buffer buffer)
        (contexture-session-transcript--goto message)))))

(defun contexture-session-transcript--insert (stats messages)
  "Show MESSAGES in this buffer, below a header line from STATS."
  (let ((inhibit-read-only t))
    (erase-buffer)
    (setq header-line-format
          (contexture-session--header
           (format "Conversation %s: %s, %s in view, %s%s" (plist-get stats :session)
                   (contexture-session--many (length messages) "message")
                   (contexture--number (plist-get stats :items))
                   (contexture-session--many (plist-get stats :tokens) "token")
                   (if (eq contexture-session--view :log)
                       "; with what was rolled back" ""))))
    (if messages
        (progn
          (apply #'insert (mapcar #'contexture-session--message-text messages))
          (contexture--show-hidden))
      (insert "There is no message yet.  "
              (contexture-session--key 'contexture-session-add-message)
              " adds a message.\n"))))

(defun contexture-session--header (text)
  "Return TEXT as a header line, which takes percent signs doubled."
  (concat " " (string-replace "%" "%%" (contexture--visible text))))

(defun contexture-session-transcript--goto (id)
  "Go to the message ID, or to the last one if it is not there."
  (goto-char (point-max))
  (let ((position (and id (point-min))))
    (while (and position
                (not (equal id (plist-get (get-text-property
                                           position 'contexture-session-message)
                                          :id))))
      (setq position (next-single-property-change
                      position 'contexture-session-message)))
    (if position (goto-char position)
      (contexture-session-transcript-previous))))

(defun contexture-session-transcript--revert (&rest _)
  "Fetch the messages again, and stay at the one at point."
  (contexture-session-transcript--fetch
   contexture-session--shown contexture-session--view
   (plist-get (get-text-property (point) 'contexture-session-message) :id)
   (current-buffer)))

(defun contexture-session-transcript-next (&optional count)
  "Go to the next message, or COUNT messages forward."
  (interactive "p")
  (dotimes (_ (or count 1))
    (let ((next (next-single-property-change (point) 'contexture-session-message)))
      (when (and next (< next (point-max)))
        (goto-char next)))))

(defun contexture-session-transcript-previous (&optional count)
  "Go back to the beginning of a message, or to that COUNT messages back."
  (interactive "p")
  (dotimes (_ (or count 1))
    (goto-char (previous-single-property-change
                (point) 'contexture-session-message nil (point-min)))))

(defun contexture-session-transcript--message ()
  "Return the message at point, or signal an error."
  (or (get-text-property (point) 'contexture-session-message)
      (user-error "There is no message at point")))

(defun contexture-session-transcript-pin ()
  "Pin or unpin the message at point.
A window never leaves out a pinned message."
  (interactive)
  (let* ((message (contexture-session-transcript--message))
         (pin (not (plist-get message :pinned)))
         (buffer (current-buffer)))
    (contexture-session--call
     'pin-message
     (append (contexture-session--params :id (plist-get message :id))
             (list :pinned pin))
     (lambda (result)
       (contexture-session--announce result "pin-message")
       (contexture--message "%s is %s" (plist-get message :id)
                (if (plist-get result :pinned) "pinned" "not pinned"))
       (when (buffer-live-p buffer)
         (with-current-buffer buffer (revert-buffer)))))))

(defun contexture-session-transcript-copy ()
  "Copy the text of the message at point to the kill ring."
  (interactive)
  (let ((message (contexture-session-transcript--message)))
    (kill-new (plist-get message :content))
    (contexture--message "Copied %s" (plist-get message :id))))

(defun contexture-session-transcript-toggle-log ()
  "Show or hide the messages that were rolled back."
  (interactive)
  (setq contexture-session--view
        (if (eq contexture-session--view :log) :conversation :log))
  (revert-buffer))

;;;; Single messages

(defconst contexture-session--message-buffer "*contexture: message*"
  "Name of the buffer that shows chosen messages of a conversation.")

(defun contexture-session--show-messages (session params)
  "Show the messages that PARAMS choose in their own buffer.
SESSION is the id of their conversation, or nil for the current one.  PARAMS
are parameters of `get-messages'."
  (contexture-session--call
   'get-messages (append (contexture--plist :session session) '(:view :log) params)
   (lambda (messages)
     (let ((buffer (get-buffer-create contexture-session--message-buffer))
           (inhibit-read-only t))
       (with-current-buffer buffer
         (contexture-session-transcript-mode)
         (setq contexture-session--shown session
               revert-buffer-function #'ignore)
         (erase-buffer)
         (apply #'insert (mapcar #'contexture-session--message-text messages))
         (contexture--show-hidden)
         (goto-char (point-min)))
       (pop-to-buffer buffer)))))

;;;; Searching

(defconst contexture-session-search-buffer "*contexture: search*"
  "Name of the buffer that shows the hits of a search in conversations.")

(defvar contexture-session-message-history nil
  "Minibuffer history of messages, and of texts about checkpoints.")

(defvar contexture-session-setting-history nil
  "Minibuffer history of values of settings.")

(defvar contexture-session-search-history nil
  "Minibuffer history of searches in conversations.")

(defvar-local contexture-session--query nil
  "Query, a string, whose hits this buffer shows.")

(defvar contexture-session-search-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-session-search-visit)
    (define-key map [mouse-2] #'contexture-session-search-visit)
    (define-key map [follow-link] 'mouse-face)
    (define-key map "n" #'next-line)
    (define-key map "p" #'previous-line)
    (define-key map "s" #'contexture-session-search)
    (define-key map "?" #'describe-mode)
    map)
  "Keymap of `contexture-session-search-mode'.")

(define-derived-mode contexture-session-search-mode special-mode "Search"
  "Major mode for the hits of a search in conversations.
\\<contexture-session-search-mode-map>\
\\[contexture-session-search-visit] shows the message in its conversation.

\\{contexture-session-search-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq-local truncate-lines t
              revert-buffer-function #'contexture-session-search--revert))

;;;###autoload
(defun contexture-session-search (query)
  "Search the names and messages of all conversations for the words of QUERY.
The best hits come first; RET shows one in its conversation."
  (interactive (list (read-string "Search conversations for: " nil
                                  'contexture-session-search-history)))
  (when (string-blank-p query)
    (user-error "Type some words to search for"))
  (contexture-session--call
   'search-sessions (list :query query :limit 100)
   (lambda (hits)
     (if (null hits)
         (contexture--message "No conversation matches %s" query)
       (pop-to-buffer (get-buffer-create contexture-session-search-buffer))
       (contexture-session-search--show query hits)))))

(defun contexture-session-search--show (query hits)
  "Show HITS, the result of a search for QUERY, in this buffer."
  (unless (derived-mode-p 'contexture-session-search-mode)
    (contexture-session-search-mode))
  (setq contexture-session--query query
        header-line-format
        (contexture-session--header
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
      (let ((name (contexture-session--fit (funcall session hit) width))
            (role (contexture-session--fit
                   (contexture--name (or (plist-get hit :role) "name")) 9))
            (text (or (plist-get hit :snippet) "")))
        (insert (propertize
                 (concat (propertize name 'face 'bold) "  "
                         (propertize role 'face 'contexture-session-role) " "
                         (replace-regexp-in-string "[ \t\n\r]+" " " text) "\n")
                 'contexture-session-hit hit 'mouse-face 'highlight
                 'help-echo "RET: show it in its conversation"))))
    (contexture--show-hidden)
    (goto-char (point-min))))

(defun contexture-session--fit (text width)
  "Return TEXT cut or padded to exactly WIDTH columns."
  (truncate-string-to-width text width nil ?\s t))

(defun contexture-session-search--revert (&rest _)
  "Repeat the search whose hits this buffer shows."
  (contexture-session-search contexture-session--query))

(defun contexture-session-search-visit (&optional event)
  "Show the message of a hit in the transcript of its conversation.
The hit is at point, or where EVENT, a click, is."
  (interactive (list last-nonmenu-event))
  (when (mouse-event-p event)
    (mouse-set-point event))
  (let ((hit (or (get-text-property (point) 'contexture-session-hit)
                 (user-error "There is no hit at point"))))
    (contexture-session-transcript (plist-get hit :id) (plist-get hit :message))))

;;;; Exporting and importing

;;;###autoload
(defun contexture-session-export (session &optional format file)
  "Export all messages of a conversation, by default the current one.
SESSION is its id, or nil for the current one.  FORMAT is `markdown', a
readable transcript, or `json', which `contexture-session-import' reads.
Show the text in a buffer or, with a prefix argument, write it to FILE, as
JSON if its name ends in \".json\"."
  (interactive
   (if current-prefix-arg
       (let ((file (read-file-name "Export the conversation to file: ")))
         (list contexture-session--shown
               (if (string-suffix-p ".json" file t) 'json 'markdown) file))
     (list contexture-session--shown
           (intern (completing-read (format-prompt "Export as" "markdown")
                                    '("markdown" "json") nil t nil nil "markdown")))))
  (when (and file (file-exists-p file)
             (not (y-or-n-p (contexture--format "Replace %s? " (contexture--abbreviate file)))))
    (user-error "Nothing was written; choose another file"))
  (contexture-session--call
   'export-session
   (contexture--plist :session session :format (or format 'markdown))
   (lambda (result)
     (if file
         (let ((coding-system-for-write 'utf-8-unix))
           (write-region (plist-get result :text) nil file nil 'silent)
           (contexture--message "Wrote conversation %s (%s) to %s" (plist-get result :session)
                    (contexture-session--many (plist-get result :messages) "message")
                    (contexture--abbreviate file)))
       (contexture-session--show-export result (or format 'markdown))))))

(defun contexture-session--show-export (result format)
  "Show RESULT, that of `export-session' with FORMAT, in its own buffer."
  (let ((buffer (get-buffer-create
                 (contexture--format "*contexture: export of %s*" (plist-get result :session)))))
    (with-current-buffer buffer
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (plist-get result :text))
        (contexture--show-hidden))
      (cond ((eq format 'json) (if (fboundp 'js-json-mode) (js-json-mode) (js-mode)))
            ((fboundp 'markdown-mode) (contexture--enter-mode 'markdown-mode))
            (t (text-mode)))
      (setq-local buffer-file-coding-system 'utf-8-unix)
      (set-buffer-modified-p nil)
      (goto-char (point-min)))
    (pop-to-buffer buffer)))

;;; Change a conversation, and undo it

;; Commands that change a conversation: adding to it, taking checkpoints and
;; going back to them, pruning and summarizing, and its settings.  Commands
;; do not wait for the server, except for the names to choose from.

;;;; Adding

(defun contexture-session--read-role (ask)
  "Return the role of a new message: \"user\", or one to ask for if ASK."
  (if ask
      (completing-read (format-prompt "Role" "user")
                       '("user" "assistant" "system" "tool")
                       nil t nil nil "user")
    "user"))

;;;###autoload
(defun contexture-session-add-message (text &optional role)
  "Append TEXT to the conversation as a message of the user.
With a prefix argument, choose another ROLE, such as \"assistant\"."
  (interactive
   (let ((role (contexture-session--read-role current-prefix-arg)))
     (list (read-string (contexture--format "Message of the %s: " role) nil
                        'contexture-session-message-history)
           role)))
  (when (string-blank-p text)
    (user-error "The message is empty"))
  (contexture-session--call
   'add-message
   (contexture-session--params :content text :role (intern (or role "user")))
   (lambda (result)
     (contexture--message "Added %s to conversation %s (%s)" (plist-get result :id)
              (plist-get result :session) (contexture-session--size result)))))

;;;###autoload
(defun contexture-session-add-region (beg end &optional role)
  "Append the text between BEG and END to the conversation as a message.
With a prefix argument, choose another ROLE than the user.  The message
does not record its source; use `contexture-add-region' to keep that."
  (interactive
   (progn
     (unless (use-region-p)
       (user-error "Mark a region first"))
     (list (region-beginning) (region-end)
           (contexture-session--read-role current-prefix-arg))))
  (contexture-session-add-message (buffer-substring-no-properties beg end) role)
  (setq deactivate-mark t))

;;;; Checkpoints

;;;###autoload
(defun contexture-session-checkpoint (&optional text)
  "Take a checkpoint of the conversation, to which you can go back.
TEXT, which may be empty, describes it."
  (interactive (list (read-string "Describe the checkpoint: " nil
                                  'contexture-session-message-history)))
  (contexture-session--call
   'checkpoint
   (contexture-session--params
    :message (unless (string-blank-p (or text "")) (string-trim text)))
   (lambda (result)
     (if result
         (contexture--message "Took %s of conversation %s at turn %d; %s goes back to it"
                  (plist-get result :checkpoint) (plist-get result :session)
                  (plist-get result :turn)
                  (contexture-session--key 'contexture-session-rollback))
       (contexture--message "This conversation keeps no checkpoints; its setting \
\"versioning\" is off (%s)" (contexture-session--key 'contexture-session-configure))))))

(defun contexture-session--checkpoint-text (checkpoint turns)
  "Return the annotation of CHECKPOINT in a conversation with TURNS turns.
It says how many turns going back to it would lose."
  (let ((lost (max 0 (- turns (plist-get checkpoint :turn)))))
    (format "turn %d, %s%s, %s" (plist-get checkpoint :turn)
            (contexture-session--time (plist-get checkpoint :created))
            (if (plist-get checkpoint :automatic) ", automatic" "")
            (if (= lost 0) "loses no turns"
              (concat "loses " (contexture--count lost "turn"))))))

(defun contexture-session--choose-checkpoint (prompt checkpoints turns &optional default)
  "Ask the user with PROMPT for one of CHECKPOINTS; return its id.
CHECKPOINTS are in the order in which they were taken, and the conversation
has TURNS turns now.  DEFAULT is the id of one, by default of the last."
  (let* ((alist (mapcar (lambda (it)
                          (cons (format "%s %s" (plist-get it :id)
                                        (plist-get it :message))
                                it))
                        (reverse checkpoints)))
         (default (or (car (cl-find default alist :test #'equal
                                    :key (lambda (it) (plist-get (cdr it) :id))))
                      (caar alist)))
         (name (completing-read
                (format-prompt prompt (contexture--visible default))
                (contexture--table
                 (mapcar #'car alist) 'contexture-checkpoint
                 (contexture-sets--annotate
                  alist (lambda (it) (contexture-session--checkpoint-text it turns))))
                nil t nil nil default)))
    (or (plist-get (cdr (assoc name alist)) :id)
        (user-error "No checkpoint was chosen"))))

(defun contexture-session--read-checkpoint (prompt)
  "Ask with PROMPT for a checkpoint of this buffer's conversation; return its id."
  (let* ((params (contexture-session--params))
         (stats (contexture--ask 'session-stats params))
         (checkpoints (contexture--ask 'list-checkpoints params)))
    (unless checkpoints
      (contexture--user-error "Conversation %s has no checkpoint; %s takes one"
                  (plist-get stats :session)
                  (contexture-session--key 'contexture-session-checkpoint)))
    (contexture-session--choose-checkpoint prompt checkpoints
                                           (plist-get stats :turns))))

;;;###autoload
(defun contexture-session-rollback (checkpoint)
  "Go back to CHECKPOINT, an id such as \"chk-3\", of the conversation.
Later messages are taken back; they stay only in the log.
`contexture-session-undo-rollback' undoes this."
  (interactive (list (contexture-session--read-checkpoint "Go back to")))
  (contexture-session--call
   'rollback (contexture-session--params :checkpoint checkpoint)
   #'contexture-session--report-rolled-back))

(defun contexture-session--report-rolled-back (result)
  "Show a message that a conversation was rolled back.
RESULT is that of the method `rollback'."
  (contexture--message "Conversation %s is back at %s: %s, %s lost; %s undoes this"
           (plist-get result :session) (plist-get result :commit-restored)
           (contexture--count (plist-get result :turns-lost) "turn")
           (contexture--count (plist-get result :messages-lost) "message")
           (contexture-session--key 'contexture-session-undo-rollback)))

;;;###autoload
(defun contexture-session-undo-rollback ()
  "Undo the last rollback of the conversation.
Messages added since that rollback are taken back; they stay only in the log."
  (interactive)
  (contexture-session--call
   'undo-rollback (contexture-session--params)
   #'contexture-session--report-unrolled))

(defun contexture-session--report-unrolled (result)
  "Show a message that a rollback was undone.
RESULT is that of the method that undid it."
  (contexture--message "The rollback of conversation %s is undone: %s restored%s; %s redoes it"
           (plist-get result :session)
           (contexture--count (plist-get result :turns-restored) "turn")
           (let ((lost (or (plist-get result :turns-lost) 0)))
             (if (> lost 0)
                 (format "; %s made since then lost" (contexture--count lost "turn"))
               ""))
           (contexture-session--key 'contexture-session-redo)))

;;;###autoload
(defun contexture-session-fork (name &optional checkpoint)
  "Start a conversation called NAME that continues from this one.
With a prefix argument, it continues from a CHECKPOINT, an id.  If NAME is
empty, the server chooses a name.  The new conversation becomes current."
  (interactive
   (let ((checkpoint (and current-prefix-arg
                          (contexture-session--read-checkpoint "Go on from"))))
     (list (read-string "Name of the new conversation (empty for an automatic one): " nil
                        'contexture-session-history)
           checkpoint)))
  (contexture-session--call
   'fork-session
   (contexture-session--params
    :name (unless (string-blank-p (or name "")) (string-trim name))
    :checkpoint checkpoint)
   (lambda (entry)
     (contexture--message "Conversation %s continues from %s (%s); it is now the current one"
              (plist-get entry :session) (or checkpoint "there")
              (contexture-session--size entry)))))

;;;; Pruning and summarizing

;;;###autoload
(defun contexture-session-prune (&optional tokens)
  "Take the least important messages of the conversation out of view.
Stop when the messages left in view have at most TOKENS, the prefix argument,
by default 80 percent of the model's window.  `contexture-session-undo'
brings the messages back."
  (interactive (list (and current-prefix-arg
                          (prefix-numeric-value current-prefix-arg))))
  (contexture-session--call
   'prune-session (contexture-session--params :keep-tokens tokens :brief t)
   (lambda (result)
     (let* ((stats (plist-get result :stats))
            (removed (plist-get stats :items-removed)))
       (if (= removed 0)
           (contexture--message "Nothing to prune: conversation %s has only %s"
                    (plist-get result :session)
                    (contexture-session--many (plist-get stats :final) "token"))
         (contexture--message "Pruned %s of conversation %s: %s → %s tokens; %s brings them back"
                  (contexture--count removed "message")
                  (plist-get result :session)
                  (contexture--number (plist-get stats :original))
                  (contexture--number (plist-get stats :final))
                  (contexture-session--key 'contexture-session-undo)))))))

;;;###autoload
(defun contexture-session-summarize (&optional keep)
  "Replace the older messages of the conversation with a summary.
The last KEEP messages, the prefix argument or else 10, stay in view.  Show
the summary.  `contexture-session-undo' brings the messages back."
  (interactive (list (and current-prefix-arg
                          (prefix-numeric-value current-prefix-arg))))
  (contexture-session--call
   'summarize-session (contexture-session--params :keep-messages keep)
   (lambda (result)
     (contexture-session--show-summary (plist-get result :summary))
     (contexture--message "Summarized %s of conversation %s: %s → %s tokens; %s brings them back"
              (contexture--count
               (plist-get (plist-get result :stats) :summarized-items) "message")
              (plist-get result :session)
              (contexture--number (plist-get result :tokens-before))
              (contexture--number (plist-get result :tokens-after))
              (contexture-session--key 'contexture-session-undo)))))

(defun contexture-session--show-summary (summary)
  "Show SUMMARY, which replaces messages, in its own buffer.
It is a text, or a plist that has the text as `:content'."
  (let ((buffer (get-buffer-create "*contexture: summary*")))
    (with-current-buffer buffer
      (special-mode)
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (if (stringp summary) summary (plist-get summary :content)))
        (contexture--show-hidden))
      (goto-char (point-min)))
    (pop-to-buffer buffer)))

;;;; Going back to another view

;;;###autoload
(defun contexture-session-undo ()
  "Undo the last pruning, summary, rollback or return to an earlier view.
Use it again to undo earlier changes of the conversation.  To choose the
change to undo, use `contexture-session-restore-revision'.
`contexture-session-redo' redoes what was undone."
  (interactive)
  (contexture-session--step 'undo-session :undone))

;;;###autoload
(defun contexture-session-redo ()
  "Redo the change of the conversation that was undone last.
Use it again to redo more.  After a new message, or another change of what
is in view, nothing can be redone."
  (interactive)
  (contexture-session--step 'redo-session :redone))

(defun contexture-session--step (method what)
  "Call METHOD, `undo-session' or `redo-session', and show a message about it.
WHAT is the keyword under which the result names the change."
  (contexture-session--call
   method (contexture-session--params)
   (lambda (result)
     (let ((change (contexture--name (plist-get result what)))
           (session (plist-get result :session)))
       (if (and (eq method 'undo-session) (equal change "rollback"))
           (contexture-session--report-unrolled result)
         (contexture--message
          "%s %s of conversation %s; %s" (if (eq method 'undo-session) "Undid" "Redid")
          (contexture-session--change-name change) session
          (if (eq method 'undo-session)
              (format "%s redoes it"
                      (contexture-session--key 'contexture-session-redo))
            (format "%s undoes it"
                    (contexture-session--key 'contexture-session-undo)))))))))

(defun contexture-session--change-name (method)
  "Return a phrase for the change that METHOD, a symbol or a string, made."
  (pcase (contexture--name method)
    ("prune-session" "the pruning")
    ("summarize-session" "the summary")
    ("rollback" "the rollback")
    ("restore-revision" "the return to an earlier view")
    (_ "the changes of the last turn")))

;;;###autoload
(defun contexture-session-restore-revision (revision)
  "Restore what was in view of the model as of REVISION.
REVISION is the number of a change of the view, or 0 for before the first.
This undoes later prunings and summaries.  Newer messages stay in view."
  (interactive (list (contexture-session--read-revision)))
  (contexture-session--call
   'restore-revision (append (contexture-session--params) (list :revision revision))
   (lambda (result)
     (contexture--message "Conversation %s shows the view of revision %d again; %s undoes it"
              (plist-get result :session) (plist-get result :restored)
              (contexture-session--key 'contexture-session-undo)))))

(defun contexture-session--read-revision ()
  "Ask for a change of the view to undo; return the revision before it."
  (let* ((revisions (or (contexture--ask 'list-revisions (contexture-session--params))
                        (user-error "Nothing has changed the view of this conversation")))
         (alist (mapcar (lambda (it)
                          (cons (format "%d %s" (plist-get it :revision)
                                        (contexture--name (plist-get it :method)))
                                it))
                        revisions))
         (undoable (plist-get (contexture--ask 'next-session-changes
                                               (contexture-session--params))
                              :next-undo))
         (default (or (car (cl-find (plist-get undoable :revision) alist
                                    :key (lambda (it) (plist-get (cdr it) :revision))))
                      (caar alist)))
         (name (completing-read
                (format-prompt "Show what was in view before" default)
                (contexture--table
                 (mapcar #'car alist) 'contexture-revision
                 (contexture-sets--annotate
                  alist (lambda (it)
                          (format "after message %d, %s" (plist-get it :position)
                                  (contexture-session--time
                                   (plist-get it :created))))))
                nil t nil nil default)))
    (let ((revision
           (or (cdr (assoc name alist)) (user-error "No change was chosen"))))
      (or (plist-get (cadr (member revision revisions)) :revision) 0))))

;;;; Settings

(defconst contexture-session--more-settings
  '((:model :type string :doc "the model that windows are made for")
    (:strategy :values ("tiered" "query" "sliding" "importance")
               :doc "the strategy that chooses what is in a window" :default :tiered)
    (:archive-pruned :type boolean :doc "pruned and summarized messages become memories"
                     :default t)
    (:versioning :type boolean :doc "checkpoints are taken" :default t)
    (:manage :type boolean :doc "a template takes notes on the history")
    (:template :type string :doc "the template that takes notes")
    (:recent-runs :type integer :doc "number of turns that the note-taker is shown")
    (:passthrough-runs :type integer :doc "number of turns that are sent as they are")
    (:token-threshold :type integer :doc "tokens of history below which all is sent")
    (:tools :type names :doc "the tools that models may use")
    (:allowed-tools :type names :doc "the tools that need no approval"))
  "Descriptions of the settings that the server itself does not describe.")

(defun contexture-session--settings (result)
  "Return descriptions of all settings, with their values, as plists.
RESULT is that of the method `configure-session'."
  (append (plist-get result :settings)
          (cl-loop for (name . more) in contexture-session--more-settings
                   collect `(:name ,name :value ,(plist-get result name) ,@more))))

(defun contexture-session--setting-type (setting)
  "Return the type of SETTING, a description.
It is `boolean', `name', `names', `string', `integer' or `number'."
  (cond ((plist-get setting :type))
        ((plist-get setting :values) 'name)
        ((not (plist-get setting :least)) 'boolean)
        ((integerp (plist-get setting :least)) 'integer)
        (t 'number)))

(defun contexture-session--setting-text (setting)
  "Return the annotation of SETTING: value, default, range and description."
  (let ((show (lambda (value)
                (pcase (cons value (contexture-session--setting-type setting))
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

(defun contexture-session--read-value (setting)
  "Ask for a value of SETTING; return it in the form for `configure-session'."
  (let* ((name (contexture--name (plist-get setting :name)))
         (value (plist-get setting :value))
         (prompt (format "%s (%s): " name (contexture-session--setting-text setting))))
    (pcase (contexture-session--setting-type setting)
      ('boolean (equal (completing-read prompt '("on" "off") nil t nil nil
                                        (if value "off" "on"))
                       "on"))
      ('name (intern (completing-read prompt (plist-get setting :values) nil t nil nil
                                      (contexture--name value))))
      ('string (read-string prompt nil 'contexture-session-setting-history value))
      ('names
       (require 'contexture-repl-turn)
       (vconcat (delete "" (completing-read-multiple
                            prompt contexture-repl--tools nil t))))
      (type (contexture-session--number
             setting type
             (string-trim (read-string (concat (substring prompt 0 -2)
                                               "; empty for the default): ")
                                       (and value (format "%s" value)) t)))))))

(defun contexture-session--number (setting type text)
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
(defun contexture-session-configure (name value)
  "Set the setting NAME, a keyword, of the conversation to VALUE.
Completion shows the value, the default and the range of each setting."
  (interactive
   (let* ((settings (contexture-session--settings
                     (contexture--ask 'configure-session
                                      (contexture-session--params))))
          (alist (mapcar (lambda (it)
                           (cons (contexture--name (plist-get it :name)) it))
                         settings))
          (setting (cdr (assoc (completing-read
                                "Setting: "
                                (contexture--table
                                 (mapcar #'car alist) 'contexture-setting
                                 (contexture-sets--annotate
                                  alist #'contexture-session--setting-text))
                                nil t)
                               alist))))
     (unless setting
       (user-error "No setting was chosen"))
     (list (plist-get setting :name) (contexture-session--read-value setting))))
  (contexture-session--call
   'configure-session
   (append (contexture-session--params) (list name value))
   (lambda (result)
     (let ((setting (cl-find name (contexture-session--settings result)
                             :key (lambda (it) (plist-get it :name)))))
       (contexture--message "%s of conversation %s: %s" (contexture--name name)
                (plist-get result :session)
                (contexture-session--setting-text setting))))))

;;; Notes on the history, turn by turn

;; When a template takes notes on the history of a conversation, each turn has
;; an entry, even if notes were not needed or failed.  This lists them, the
;; newest first, and shows what the note-taker was asked and answered.

(defconst contexture-session-views-buffer "*contexture: views*"
  "Name of the buffer that lists the notes of a conversation.")

(defconst contexture-session-view-buffer "*contexture: view*"
  "Name of the buffer that shows the notes of one turn.")

(defconst contexture-session-views--limit 200
  "Maximum number of turns whose notes are listed.")

(defvar contexture-session-views-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-session-views-show)
    (define-key map (kbd "SPC") #'contexture-session-views-show)
    (define-key map "f" #'contexture-session-views-filter)
    map)
  "Keymap of `contexture-session-views-mode'.")

(defvar-local contexture-session-views--status nil
  "Status of the notes in this list, a keyword, or nil for all.")

(define-derived-mode contexture-session-views-mode tabulated-list-mode "Views"
  "Major mode for the notes of a conversation.
\\<contexture-session-views-mode-map>\\[contexture-session-views-show] shows \
what the note-taker was asked and answered for
the turn at point; \\[contexture-session-views-filter] lists only notes \
with one status.

\\{contexture-session-views-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq tabulated-list-format
        [("Turn" 6 contexture-session-views--by-turn :right-align t)
         ("Template" 14 t) ("Status" 15 t) ("Tokens" 18 nil)
         ("When" 16 t) ("Model or reason" 0 nil)]
        tabulated-list-sort-key nil)
  (setq-local revert-buffer-function #'contexture-session-views--revert)
  (tabulated-list-init-header))

;;;###autoload
(defun contexture-session-views (&optional session)
  "List the notes that were taken on the history of the conversation.
With a prefix argument, choose the conversation.  SESSION is its id, or nil
for the current one."
  (interactive (list (if current-prefix-arg
                         (contexture-session--id
                          (contexture-session--read "Notes of"))
                       (contexture-session--here))))
  (with-current-buffer (get-buffer-create contexture-session-views-buffer)
    (contexture-session-views-mode)
    (setq contexture-session--shown session
          contexture-session-views--status nil)
    (contexture-session-views--revert))
  (pop-to-buffer contexture-session-views-buffer))

(defun contexture-session-views--revert (&rest _)
  "Fetch the notes of this buffer's conversation, and list them."
  (let ((buffer (current-buffer)))
    (contexture-session--call
     'list-notes
     (contexture-session-views--params :limit contexture-session-views--limit
                                       :brief t)
     (lambda (views)
       (when (buffer-live-p buffer)
         (with-current-buffer buffer
           (setq tabulated-list-entries
                 (mapcar (lambda (view) (list view (contexture-session-views--row view)))
                         views)
                 header-line-format nil)
           (tabulated-list-init-header)
           (tabulated-list-print t)
           (unless tabulated-list-entries
             (let ((inhibit-read-only t))
               (insert (if contexture-session-views--status
                           "There are no notes with this status; f lists others.\n"
                         "No notes were taken in this conversation yet; in its buffer, \
C-c C-t turns them on.\n"))))))))))

(defun contexture-session-views--params (&rest plist)
  "Return PLIST with parameters for the conversation and status of this list."
  (append (contexture-session--params :status contexture-session-views--status)
          plist))

(defun contexture-session-views--row (view)
  "Return the columns of the list for VIEW, the notes of one turn."
  (let ((status (contexture--name (plist-get view :status))))
    (vector (format "%s" (or (plist-get view :turn) ""))
            (contexture--visible (or (plist-get view :template) ""))
            (propertize status 'face (if (equal status "failed") 'error 'default))
            (let ((before (plist-get view :tokens-before))
                  (after (plist-get view :tokens-after)))
              (cond ((and before after)
                     (contexture-session--many-of before after))
                    (before (contexture-session--many before "token"))
                    (t "")))
            (if (plist-get view :created)
                (contexture-session--time (plist-get view :created)) "")
            (let ((reason (plist-get view :reason)))
              (if (and reason (not (equal reason "")))
                  (concat (let ((step (plist-get view :step)))
                            (if step (concat (contexture--name step) ": ") ""))
                          (contexture--visible reason))
                (contexture--visible (or (plist-get view :model) "")))))))

(defun contexture-session-views--by-turn (one other)
  "Return non-nil if ONE, an entry of the list, is of an earlier turn than OTHER."
  (< (or (plist-get (car one) :turn) 0) (or (plist-get (car other) :turn) 0)))

(defun contexture-session-views-filter (status)
  "List only the notes with STATUS, such as \"failed\".
If STATUS is empty or \"all\", list all."
  (interactive
   (list (completing-read "Status: " '("all" "managed" "below-threshold" "disabled"
                                       "failed")
                          nil t nil nil "all")))
  (setq contexture-session-views--status
        (unless (member status '("all" "")) (intern (concat ":" status))))
  (contexture-session-views--revert))

;;;; The notes of one turn

(defun contexture-session-views-show ()
  "Show the notes at point, with the note-taker's request and answer."
  (interactive)
  (let ((view (or (tabulated-list-get-id) (user-error "There are no notes at point"))))
    (contexture-session--call
     'list-notes (list :view (plist-get view :id) :limit 1)
     (lambda (views) (contexture-session-views--show (or (car views) view))))))

(defun contexture-session-views--show (view)
  "Show VIEW, the notes of one turn, in their own buffer."
  (with-current-buffer (get-buffer-create contexture-session-view-buffer)
    (let ((inhibit-read-only t))
      (special-mode)
      (setq-local word-wrap t)
      (erase-buffer)
      (contexture-session-views--insert view)
      (contexture--show-hidden)
      (goto-char (point-min)))
    (pop-to-buffer (current-buffer))))

(defun contexture-session-views--insert (view)
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
                                        (contexture-session-views--value key value)))))))
    (pcase-dolist (`(,name . ,text) texts)
      (insert "\n" (propertize name 'face 'bold) "\n\n" (string-trim-right text) "\n"))))

(defun contexture-session-views--value (key value)
  "Return VALUE, that of KEY in the notes of a turn, as text."
  (cond ((and (eq key :created) (numberp value)) (contexture-session--time value))
        ((eq value t) "yes")
        ((keywordp value) (contexture--name value))
        ((eq key :path) (contexture--visible (contexture--abbreviate value)))
        ((listp value) (mapconcat (lambda (it) (contexture--name it)) value ", "))
        (t (contexture--format "%s" value))))

;;; Import conversations

;; Imports sessions: a JSON export of Contexture, or what other agents
;; recorded.  For the latter, the command first shows what there is, and
;; imports it only if the user agrees.

(defconst contexture-session-import-buffer "*contexture: import*"
  "Name of the buffer that shows what would be imported.")

(defun contexture-session-import--project ()
  "Return the root of this buffer's project, or else the default directory."
  (expand-file-name
   (if-let* ((project (project-current))) (project-root project) default-directory)))

(defun contexture-session-import--places ()
  "Return the existing folders in which agents record sessions of this project."
  (let* ((project (contexture-session-import--project))
         (name (replace-regexp-in-string "[^[:alnum:]]" "-" (directory-file-name project)))
         (claude (or (getenv "CLAUDE_CONFIG_DIR") "~/.claude"))
         (codex (or (getenv "CODEX_HOME") "~/.codex")))
    (seq-filter #'file-directory-p
                (list (expand-file-name ".specstory/history" project)
                      (expand-file-name name (expand-file-name "projects" claude))
                      (expand-file-name "sessions" codex)))))

(defun contexture-session-import--read ()
  "Ask for a file or folder to import, by default one with recorded sessions."
  (let ((place (car (contexture-session-import--places))))
    (read-file-name "Import conversations from file or folder: "
                    (and place (file-name-as-directory place))
                    (and place (contexture--abbreviate place)) t nil)))

;;;###autoload
(defun contexture-session-import (file &optional name)
  "Import the conversation or conversations in FILE.
FILE is JSON that `contexture-session-export' wrote, a session that Claude
Code, Codex or SpecStory recorded, or a folder with such recordings.  You
see what recordings contain before any of it is imported.  With a prefix
argument, give a conversation from JSON the name NAME.  Nothing is replaced:
a name that is taken gets a number."
  (interactive
   (list (contexture-session-import--read)
         (and current-prefix-arg (read-string "Name of the conversation: " nil
                                              'contexture-session-history))))
  (let ((file (expand-file-name file)))
    ;; Reading a pipe would wait without end.
    (unless (and (file-readable-p file)
                 (or (file-regular-p file) (file-directory-p file)))
      (contexture--user-error "Cannot read the file %s" (contexture--abbreviate file)))
    (if (and (not (file-directory-p file)) (equal (file-name-extension file) "json"))
        (contexture-session--call
         'import-session
         (contexture--plist
          :text (with-temp-buffer
                  (let ((coding-system-for-read 'utf-8-unix))
                    (insert-file-contents file))
                  (buffer-string))
          :name (unless (string-blank-p (or name "")) name))
         (lambda (entry)
           (contexture-session--announce entry "import-session")
           (contexture--message "Imported conversation %s (%s)"
                                (plist-get entry :session)
                                (contexture-session--size entry))))
      (contexture-session-import--preview file))))

;;;; Recordings of other agents

(defun contexture-session-import--preview (file)
  "Show which recordings FILE has, and import them if the user agrees.
FILE is a file or a folder."
  (contexture--message "Looking at %s..." (contexture--abbreviate file))
  (contexture-session--call
   'import-sessions (contexture-session-import--params file :dry-run t)
   (lambda (found)
     (with-current-buffer (get-buffer-create contexture-session-import-buffer)
       (let ((inhibit-read-only t))
         (erase-buffer)
         (dolist (file (plist-get found :files))
           (contexture-session-import--insert file))
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
         (contexture-session--call
          'import-sessions (contexture-session-import--params file)
          (lambda (done)
            (contexture--message "Imported %s, new conversations: %d"
                                 (contexture--count (plist-get done :messages)
                                                    "message")
                                 (plist-get done :sessions)))))))))

(defun contexture-session-import--params (file &rest more)
  "Return the parameters for importing FILE, with MORE, keywords and values.
The folder of Codex has the sessions of all projects, so import only those
of this project from there."
  (let ((codex (expand-file-name "sessions" (or (getenv "CODEX_HOME") "~/.codex"))))
    (append (list :paths (list file))
            (when (equal (directory-file-name file) (directory-file-name codex))
              (list :project (directory-file-name (contexture-session-import--project))))
            more)))

(defun contexture-session-import--insert (file)
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
                    (plist-get entry :reason)))))

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

(defun contexture-embark-freeze (name)
  "Freeze the item with NAME: it no longer follows its source."
  (contexture-freeze (contexture-embark--item name)))

(defun contexture-embark-follow (name)
  "Let the item with NAME follow its source again, as before it was frozen."
  (contexture-freeze (contexture-embark--item name) t))

(defvar contexture-embark-item-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-embark-visit)
    (define-key map "o" #'contexture-embark-visit)
    (define-key map "x" #'contexture-embark-remove)
    (define-key map "Z" #'contexture-embark-freeze)
    (define-key map "F" #'contexture-embark-follow)
    map)
  "Keymap with Embark's actions on an item.")

;;;; Conversations

(defun contexture-embark--session (name)
  "Return the id of the conversation with the unique NAME."
  (if-let* ((entry (assoc name (contexture-session--name-entries
                                (contexture--ask 'list-sessions nil)))))
      (contexture-session--id (cdr entry))
    (contexture--user-error "There is no conversation %s" name)))

(defun contexture-embark-talk (name)
  "Talk in the conversation with NAME."
  (contexture-repl name))

(defun contexture-embark-dashboard (name)
  "Show how full the conversation with NAME is."
  (contexture-dashboard (contexture-embark--session name)))

(defun contexture-embark-transcript (name)
  "Show the transcript of the conversation with NAME."
  (contexture-session-transcript (contexture-embark--session name)))

(defun contexture-embark-explain (name)
  "Explain the last window of the conversation with NAME, part by part."
  (contexture-explain 1 (contexture-embark--session name)))

(defun contexture-embark-export (name)
  "Show the conversation with NAME as Markdown, for you to save."
  (contexture-session-export (contexture-embark--session name)))

(defun contexture-embark-delete (name)
  "Delete the conversation with NAME.
`contexture-session-restore' brings it back."
  (contexture-session-delete (contexture-embark--session name)))

(defvar contexture-embark-session-map
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
  (add-to-list 'embark-keymap-alist '(contexture-session . contexture-embark-session-map)))

(provide 'contexture-session)
;;; contexture-session.el ends here
