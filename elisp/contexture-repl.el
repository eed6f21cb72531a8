;;; contexture-repl.el --- Talk with a model  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-repl' opens a session in a buffer: the conversation, the
;; items of the context with their tokens, and a prompt.  Your question
;; goes to the model together with the context, and the answer appears as
;; it comes.  The server keeps the session, so it is still there after
;; Emacs or the server restarts; so are your unsent drafts.
;;
;; The parts: contexture-repl-view.el draws, -markdown.el fontifies
;; answers, -input.el keeps history and drafts, -turn.el asks, -stream.el
;; draws answers as they come, -tool.el shows and approves tools,
;; -branch.el asks again, -settings.el chooses models and templates,
;; -block.el uses code in answers, -command.el has the slash commands, and
;; contexture-repl-code.el asks from other buffers.

;;; Code:

(require 'contexture-repl-command)
(require 'contexture-repl-block)
(eval-when-compile (require 'subr-x))

(defcustom contexture-repl-own-context nil
  "Non-nil means that a new session shows only items of its own.
Otherwise it also shows the items of the project of the buffer where you
start it, and those for everywhere, so that the model sees what you add
to them."
  :type 'boolean
  :group 'contexture-repl)

(defcustom contexture-repl-hide-markup t
  "Non-nil means hide the asterisks, backquotes and so on of answers.
This is for sessions opened from now on; `contexture-repl-toggle-markup'
shows or hides the markup in the current one."
  :type 'boolean
  :group 'contexture-repl)

(defcustom contexture-repl-shown-messages 100
  "Maximum number of messages to show when a session is opened.
`contexture-repl-redraw' with a prefix argument shows all."
  :type 'natnum
  :group 'contexture-repl)

(defvar contexture-repl-session-history nil
  "History of sessions opened by name.")

(defvar contexture-repl--last-buffer nil
  "Buffer of the session that was opened or asked in last.")

(defvar-local contexture-repl--items-timer nil
  "Timer that fetches the items of the context.")

(defvar contexture-repl-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-repl-send)
    (define-key map (kbd "C-c C-c") #'contexture-repl-send)
    (define-key map (kbd "C-j") #'contexture-repl-newline)
    (define-key map (kbd "TAB") #'completion-at-point)
    (define-key map (kbd "M-p") #'contexture-repl-previous-input)
    (define-key map (kbd "M-n") #'contexture-repl-next-input)
    (define-key map (kbd "M-r") #'contexture-repl-search-input)
    (define-key map (kbd "C-c C-k") #'contexture-repl-cancel)
    (define-key map (kbd "C-c C-r") #'contexture-repl-retry)
    (define-key map (kbd "C-c C-e") #'contexture-repl-edit)
    (define-key map (kbd "C-c C-b") #'contexture-repl-branch)
    (define-key map (kbd "C-c C-w") #'contexture-repl-copy-block)
    (define-key map (kbd "C-c C-i") #'contexture-repl-insert-block)
    (define-key map (kbd "C-c C-a") #'contexture-repl-apply)
    (define-key map (kbd "C-c C-n") #'contexture-repl-next-message)
    (define-key map (kbd "C-c C-p") #'contexture-repl-previous-message)
    (define-key map (kbd "C-c M-n") #'contexture-repl-next-block)
    (define-key map (kbd "C-c M-p") #'contexture-repl-previous-block)
    (define-key map (kbd "C-c C-s") #'contexture-repl-switch-session)
    (define-key map (kbd "C-c C-v") #'contexture-repl-switch-model)
    (define-key map (kbd "C-c C-t") #'contexture-repl-switch-template)
    (define-key map (kbd "C-c M-t") #'contexture-repl-toggle-managing)
    (define-key map (kbd "C-c C-y") #'contexture-repl-approve)
    (define-key map (kbd "C-c C-d") #'contexture-repl-dry-run)
    (define-key map (kbd "C-c C-l") #'contexture-list)
    (define-key map (kbd "C-c C-o") #'contexture-repl-toggle-markup)
    (define-key map (kbd "C-c M-g") #'contexture-repl-redraw)
    map)
  "Keymap of `contexture-repl-mode'.")

(define-derived-mode contexture-repl-mode nil "Chat"
  "Major mode for a session with a model.
Write at the prompt: \\<contexture-repl-mode-map>\\[contexture-repl-send] \
sends it, \\[contexture-repl-newline] begins a new line,
and `@' with \\[completion-at-point] names files, symbols and items and adds \
them to the context.
A line that begins with `/' is a command; /help lists them.  A first
line \"@context-helper NAME\" makes that template take notes for this turn.

\\[contexture-repl-cancel] stops an answer.  \\[contexture-repl-retry] asks the \
last question again, \\[contexture-repl-edit] changes the
one at point, and \\[contexture-repl-branch] branches into a new \
session.  \\[contexture-repl-copy-block]
copies the code at point, by default the last, \\[contexture-repl-insert-block] \
inserts it elsewhere,
and \\[contexture-repl-apply] applies it to the code that you asked about.

\\{contexture-repl-mode-map}"
  (set-syntax-table text-mode-syntax-table)
  (setq-local font-lock-function #'ignore
              word-wrap t
              truncate-lines nil
              scroll-conservatively 101
              bidi-paragraph-direction 'left-to-right
              bidi-inhibit-bpa t
              filter-buffer-substring-function #'contexture-repl--filter-substring
              completion-at-point-functions (list #'contexture-repl--complete t))
  (contexture--choose-evil-state 'insert)
  (setq buffer-invisibility-spec '(t)
        mode-name (list mode-name '(:eval (contexture-repl--mode-line-count))))
  (when contexture-repl-hide-markup (add-to-invisibility-spec 'contexture-markup))
  (buffer-enable-undo)
  (contexture-repl--lay-out)
  (add-hook 'pre-command-hook #'contexture-repl--before-command nil t)
  (add-hook 'after-change-functions #'contexture-repl--text-changed nil t)
  (add-hook 'kill-buffer-hook #'contexture-repl--leave nil t)
  (add-hook 'window-size-change-functions #'contexture-repl--resized nil t)
  (contexture-mention-mode)
  ;; Before mentions, which would not complete the name of a template.
  (add-hook 'completion-at-point-functions #'contexture-repl--complete-directive -90 t)
  (contexture-repl--watch))

(contexture-repl--define-menu contexture-repl-mode-map)

(defvar contexture-mention-mode)
(declare-function contexture-mention-mode "contexture-mention" (&optional arg))

;;;; Opening

;;;###autoload
(defun contexture-repl (&optional session)
  "Talk with a model, in the session used last.
If none was used since Emacs started, use the last one of this project,
or else a new one.  A prefix argument asks for another SESSION; one that
does not exist is started."
  (interactive
   (list (and current-prefix-arg (contexture-repl--read-session))))
  (pop-to-buffer (cond (session (contexture-repl--open
                                 (contexture-repl--make-session session)))
                       ((buffer-live-p contexture-repl--last-buffer)
                        contexture-repl--last-buffer)
                       (t (contexture-repl--open (contexture-repl--usual-session)))))
  (when (< (point) contexture-repl--input) (goto-char (point-max))))

(defun contexture-repl--usual-session ()
  "Return the last session of this project, or a new one."
  (let ((root (contexture--project-root)))
    (or (car (contexture--ask 'list-sessions
                              (append (contexture--plist :project root) '(:limit 1))))
        (contexture-repl--make-session nil))))

(defun contexture-repl--make-session (name)
  "Return the session called NAME, starting it if needed; nil means a new one."
  (let ((context (unless contexture-repl-own-context
                   (contexture-repl--context-to-show))))
    (contexture--ask
     'open-session
     (contexture--plist :name name
                        (if (listp context) :managers :manager) context
                        :project (contexture--project-root)
                        :request-key (contexture--make-request-key)))))

(defun contexture-repl--context-to-show ()
  "Return the context of this buffer that a new conversation shows.
With layers, it consists of the one for everywhere and that of the
project, to which the conversation belongs."
  (contexture--in-asking-buffer
    (or (contexture--fixed-context)
        (contexture--names-of
         (cl-remove-if-not (lambda (layer)
                             (memq (plist-get layer :layer) '(:everywhere :project)))
                           (contexture--layers))))))

(defun contexture-repl--read-session ()
  "Ask for the name of a session, which need not exist."
  (let* ((sessions (contexture--ask 'list-sessions nil))
         (names (mapcar (lambda (it) (plist-get it :session)) sessions))
         (name (completing-read
                (format-prompt "Session" (contexture--visible (car names)))
                (contexture--table names 'contexture-session
                                   (lambda (name)
                                     (contexture-repl--session-note name sessions)))
                nil nil nil 'contexture-repl-session-history (car names))))
    (and name (not (string-blank-p name)) (string-trim name))))

(defun contexture-repl--session-note (name sessions)
  "Return the annotation of NAME, the name of one of SESSIONS."
  (if-let* ((session (cl-find name sessions :test #'equal
                              :key (lambda (it) (plist-get it :session)))))
      (format "  %s, %s"
              (contexture--count (plist-get session :messages) "message")
              (contexture--count (plist-get session :tokens) "token"))
    ""))

(defun contexture-repl--open (session)
  "Return the buffer of SESSION, an entry of the server; create it if needed."
  (let* ((id (plist-get session :id))
         (buffer (or (contexture-repl--buffer-of id)
                     (generate-new-buffer (contexture-repl--buffer-name
                                           (plist-get session :session))))))
    (with-current-buffer buffer
      (unless (derived-mode-p 'contexture-repl-mode)
        (when-let* ((project (plist-get session :project)))
          (when (file-directory-p project)
            (setq default-directory (file-name-as-directory project))))
        (contexture-repl-mode)
        (setq contexture-repl--session session
              contexture-manager (contexture-repl--context session))
        (contexture-repl--bring-back)
        (contexture-repl--draw-header)
        (contexture-repl--ask-providers) ; first, so that headings have names
        (contexture-repl-redraw)
        (contexture-repl--fetch-settings)
        (contexture-repl--ask-templates)))
    (setq contexture-repl--last-buffer buffer)))

(defun contexture-repl--context (session)
  "Return the context that SESSION shows: one name, or the list of its layers."
  (let ((own (plist-get session :manager))
        (layers (plist-get session :managers)))
    (when layers
      (puthash own (concat "conversation " (plist-get session :session))
               contexture--labels))
    (or layers own)))

(defun contexture-repl--buffers ()
  "Return the buffers of sessions."
  (cl-remove-if-not (lambda (buffer)
                      (eq (buffer-local-value 'major-mode buffer) 'contexture-repl-mode))
                    (buffer-list)))

(defun contexture-repl--buffer-of (id)
  "Return the buffer of the session ID, or nil."
  (cl-find-if (lambda (buffer)
                (equal id (plist-get (buffer-local-value 'contexture-repl--session buffer)
                                     :id)))
              (contexture-repl--buffers)))

(defun contexture-repl--root ()
  "Return the folder to which file names in this session are relative."
  (file-name-as-directory
   (or (plist-get contexture-repl--session :project)
       (expand-file-name default-directory))))

;;;; The conversation

(defun contexture-repl-redraw (&optional all)
  "Redraw the session from the server's data.
The text at the prompt stays.  With ALL, the prefix argument, show all
messages."
  (interactive "P")
  (unless (contexture-repl--busy-p)
    (contexture-repl--request
     'get-messages
     (append (list :session (contexture-repl--session-id))
             (unless all (list :limit contexture-repl-shown-messages)))
     (lambda (messages)
       (unless (contexture-repl--busy-p)
         (contexture-repl--draw-log messages)))))
  (contexture-repl--fetch-items)
  (contexture-repl--fetch-stats))

(defun contexture-repl--draw-log (messages)
  "Replace everything shown with MESSAGES, from the server."
  (contexture-repl--changing
    (delete-region (point-min) contexture-repl--tail))
  (setq contexture-repl--messages nil)
  (contexture-repl--note-length (plist-get (car (last messages)) :id))
  (cond ((null messages)
         (contexture-repl--note (substitute-command-keys
                                 "Write a question and press \\[contexture-repl-send]. \
@ adds files and symbols, /help lists commands, \\[describe-mode] keys.")
                                nil 'contexture-intro t))
        ((not (member (plist-get (car messages) :id) '(nil "msg-1")))
         (contexture-repl--note (substitute-command-keys
                                 "Earlier messages are not shown; \
\\[universal-argument] \\[contexture-repl-redraw] shows them."))))
  (let ((gc-cons-threshold (max gc-cons-threshold (* 64 1024 1024)))
        (contexture-repl--called nil))
    (dolist (message messages)
      (contexture-repl--draw-logged message)
      (contexture-repl--draw-kept-usage (plist-get message :id))))
  (contexture-repl--note-no-model)
  (contexture-repl--draw-context))

(defun contexture-repl--draw-logged (message)
  "Draw MESSAGE, from the server.
A model's text after the use of a tool belongs to the same answer."
  (let* ((role (plist-get message :role))
         (content (or (plist-get message :content) ""))
         (last (car contexture-repl--messages))
         (going-on (and (eq role :assistant) last (contexture-repl--after-tool-p)
                        (eq (contexture-repl--message-role last) :assistant))))
    (cond ((and (eq role :tool) last)
           (contexture-repl--draw-logged-result
            (cdr (assoc (plist-get message :tool-call-id) contexture-repl--called))
            content last))
          (going-on
           (setf (contexture-repl--message-id last) (plist-get message :id))
           (unless (string-empty-p content)
             (contexture-repl--add-text last content)))
          (t (setq last (contexture-repl--add-message role content
                                                      :id (plist-get message :id)))))
    (dolist (call (plist-get message :tool-calls))
      (push (cons (plist-get call :id) (contexture-repl--tool-name call))
            contexture-repl--called)
      (contexture-repl--draw-tool-call call 'contexture-message last))))

(defvar contexture-repl--called nil
  "Alist from the ids of calls drawn from the log to names of tools.
The newest come first, since some models reuse ids.")

(defun contexture-repl--after-tool-p ()
  "Return non-nil if the last thing drawn is the use of a tool."
  (and (> contexture-repl--tail (point-min))
       (get-text-property (1- contexture-repl--tail) 'contexture-used)))

(defun contexture-repl--draw-logged-result (tool content message)
  "Draw CONTENT, the result of TOOL, as part of MESSAGE.
The server's own tools return JSON on success, else plain text.  TOOL is
nil if the call is not shown."
  (contexture-repl--draw-fold
   (contexture-repl--one-line
    (format "%s: %s" (or tool "a tool")
            (if (and (or (null tool) (member tool contexture-repl--tools))
                     (string-match-p "\\`[ \t\n]*[[{]" content))
                "done" content))
    (- (contexture-repl--width) 4))
   (and (> (length content) 40) content)
   'contexture-message message 'contexture-used t))

(defun contexture-repl-next-message (&optional count)
  "Go to the next message, or COUNT messages forward."
  (interactive "p")
  (let ((step (if (< (or count 1) 0) -1 1)))
    (dotimes (_ (abs (or count 1)))
      (contexture-repl--to-message step))))

(defun contexture-repl-previous-message (&optional count)
  "Go to the beginning of the previous message, or COUNT messages back."
  (interactive "p")
  (contexture-repl-next-message (- (or count 1))))

(defun contexture-repl--to-message (step)
  "Go to the next message, or the previous one if STEP is negative."
  (let ((starts (mapcar (lambda (it) (marker-position (contexture-repl--message-from it)))
                        contexture-repl--messages)))
    (goto-char (or (if (> step 0)
                       (cl-find-if (lambda (it) (> it (point))) (reverse starts))
                     (cl-find-if (lambda (it) (< it (point))) starts))
                   (if (> step 0) (point-max)
                     (user-error "This is the first message"))))))

(defun contexture-repl--filter-substring (beg end &optional delete)
  "Return the original text from BEG to END; if DELETE, delete it."
  (prog1 (contexture-repl-markdown--text (min beg end) (max beg end))
    (when delete (delete-region beg end))))

(defun contexture-repl-toggle-markup ()
  "Show or hide the markup of answers."
  (interactive)
  (if (memq 'contexture-markup buffer-invisibility-spec)
      (remove-from-invisibility-spec 'contexture-markup)
    (add-to-invisibility-spec 'contexture-markup))
  (force-window-update (current-buffer)))

;;;; Notifications of the server

(defun contexture-repl--watch ()
  "Listen to notifications about sessions."
  (contexture-watch #'contexture-repl--changed
                    '(session-changed management-failed providers-changed))
  (add-hook 'contexture-connected-hook #'contexture-repl--connected)
  (add-hook 'contexture-providers-hook #'contexture-repl--providers-changed)
  (add-hook 'kill-emacs-hook #'contexture-repl--keep-all))

(defun contexture-repl--leave ()
  "Save unsaved data of this buffer, and cancel its calls."
  (contexture-count--unfollow (current-buffer))
  (contexture-repl--keep-draft)
  (dolist (timer (list contexture-repl--idle-timer contexture-repl--items-timer))
    (when timer (cancel-timer timer)))
  (when-let* ((turn contexture-repl--turn))
    (contexture-repl--end-turn turn)
    (when (contexture-repl--turn-id turn)
      (contexture--cancel (contexture-repl--turn-connection turn)
                          (contexture-repl--turn-id turn))))
  (unless (remq (current-buffer) (contexture-repl--buffers))
    (contexture-repl--restore-gc-threshold)
    (contexture-unwatch #'contexture-repl--changed)
    (remove-hook 'contexture-connected-hook #'contexture-repl--connected)
    (remove-hook 'contexture-providers-hook #'contexture-repl--providers-changed)
    (remove-hook 'kill-emacs-hook #'contexture-repl--keep-all)))

(defun contexture-repl--keep-all ()
  "Save the drafts of all sessions."
  (dolist (buffer (contexture-repl--buffers))
    (with-current-buffer buffer (contexture-repl--keep-draft))))

(defun contexture-repl--connected ()
  "Update from the server that was just connected."
  (setq contexture-repl--unknown nil)
  (dolist (buffer (contexture-repl--buffers))
    (with-current-buffer buffer
      (contexture-repl--fetch-items)
      (contexture-repl--fetch-settings)
      (contexture-repl--fetch-stats))))

(defun contexture-repl--providers-changed ()
  "Fetch the providers again and show them."
  (dolist (buffer (contexture-repl--buffers))
    (with-current-buffer buffer
      (contexture-repl--ask-providers)
      (contexture-repl--count))))

(defun contexture-repl--changed (method params)
  "Handle METHOD with PARAMS, if it concerns a session shown here or providers."
  (when (eq method 'providers-changed)
    (contexture-repl--providers-changed))
  (dolist (buffer (and (memq method '(context-changed session-changed management-failed))
                       (contexture-repl--buffers)))
    (with-current-buffer buffer
      (cond ((eq method 'context-changed)
             (when (contexture--of-context-p (plist-get params :manager)
                                             contexture-manager)
               (contexture-repl--fetch-soon)))
            ((not (contexture-repl--of-this-p params)))
            ((eq method 'management-failed)
             (contexture-repl--management-failed params))
            (t (contexture-repl--session-changed params))))))

(defun contexture-repl--of-this-p (params)
  "Return non-nil if PARAMS, of a notification, concern this buffer's session."
  (if (plist-get params :id)
      (equal (plist-get params :id) (contexture-repl--session-id))
    (equal (plist-get params :session) (plist-get contexture-repl--session :session))))

(defun contexture-repl--session-changed (params)
  "Show a change of the session, from PARAMS."
  (pcase (contexture--name (plist-get params :method))
    ("rename-session" (contexture-repl--renamed (plist-get params :session)))
    ("configure-session" (contexture-repl--fetch-settings)))
  (when (and (contexture-repl--news-p params) (not (contexture-repl--busy-p)))
    (contexture-repl-redraw)))

(defun contexture-repl--renamed (name)
  "Record that the session of this buffer is called NAME now."
  (let ((old (plist-get contexture-repl--session :session)))
    (when (and name (not (equal name old)))
      (setq contexture-repl--session
            (plist-put (copy-sequence contexture-repl--session) :session name)
            contexture-repl--kept nil)
      (contexture-repl--forget-kept old)
      (contexture-repl--keep-draft)
      (when (string-prefix-p (contexture-repl--buffer-name old) (buffer-name))
        (rename-buffer (contexture-repl--buffer-name name) t))
      (contexture-repl--draw-header))))

(defun contexture-repl--buffer-name (name)
  "Return the name of the buffer of the session NAME."
  (contexture--format "*contexture: %s*" name))

(defun contexture-repl--news-p (params)
  "Return non-nil if the change of this session in PARAMS was made elsewhere.
Changes made here are already shown."
  (let ((before contexture-repl--log-length))
    (setq contexture-repl--log-length (or (plist-get params :messages) before))
    (pcase (contexture--name (plist-get params :method))
      ("rollback"
       (if (= contexture-repl--own-rollbacks 0) t
         (cl-decf contexture-repl--own-rollbacks)
         nil))
      ((or "undo-rollback" "undo-session" "redo-session") t)
      ((or "add-message" "chat")
       (and (= contexture-repl--asking 0)
            (> contexture-repl--log-length before))))))

(defun contexture-repl--fetch-soon ()
  "Fetch the items in a moment, once for many changes."
  (unless contexture-repl--items-timer
    (let ((buffer (current-buffer)))
      (setq contexture-repl--items-timer
            (run-at-time 0.05 nil
                         (lambda ()
                           (when (buffer-live-p buffer)
                             (with-current-buffer buffer
                               (setq contexture-repl--items-timer nil)
                               (contexture-repl--fetch-items)))))))))

(defun contexture-repl--fetch-items ()
  "Fetch the items of the context, and show them."
  (contexture-repl--request
   'list-items (append (contexture--context-params contexture-manager) '(:brief t))
   (lambda (items)
     (setq contexture-repl--items items)
     (contexture-repl--draw-context))
   #'ignore))

(defun contexture-repl--fetch-stats (&optional after-turn)
  "Ask how full the model's window is, and show that.
AFTER-TURN is non-nil after a turn of this buffer.  Until the answer is
there, notifications about new messages may then concern that turn."
  (when after-turn (cl-incf contexture-repl--asking))
  (contexture-repl--count)
  (contexture-repl--request
   'session-stats (contexture--plist :session (contexture-repl--session-id)
                                     :model (plist-get contexture-repl--settings :model))
   (lambda (stats)
     (when after-turn (cl-decf contexture-repl--asking))
     (setq contexture-repl--stats stats
           contexture-repl--log-length (max contexture-repl--log-length
                                            (or (plist-get stats :log) 0)))
     (contexture-repl--draw-header))
   (lambda (_) (when after-turn (cl-decf contexture-repl--asking)))))

(defun contexture-repl--count ()
  "Have what this buffer would send counted, now and after every change."
  (when-let* ((id (plist-get contexture-repl--session :id)))
    (contexture-count--follow id (current-buffer) #'contexture-repl--draw-header)
    (contexture-count--changed id)))

(defun contexture-repl--resized (_window)
  "Redraw the line with the context for the width of the window."
  (contexture-repl--draw-context))

;;;; Choosing

(defun contexture-repl-switch-session (session)
  "Show SESSION in this window; start it if it does not exist."
  (interactive (list (contexture-repl--read-session)))
  (switch-to-buffer (contexture-repl--open (contexture-repl--make-session session))))

(provide 'contexture-repl)
;;; contexture-repl.el ends here
