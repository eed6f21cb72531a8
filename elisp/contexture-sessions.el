;;; contexture-sessions.el --- The sessions of all agents  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-sessions' lists the sessions of all agents: those that wait
;; for you first, then those that run, each with its last words.  From there
;; you read a session, go on with it in its agent, copy its facts into a new
;; conversation, or hide it.
;;
;; The server reads what the agents record.  Their files are watched only
;; while the list is open.  With the hooks of `contexture setup', an agent
;; itself tells what it is doing; without them, the list says no more than
;; the recording shows.

;;; Code:

(require 'contexture-conversations)
(require 'contexture-rpc)
(require 'filenotify)
(require 'map)
(eval-when-compile (require 'subr-x))

(declare-function customize-save-variable "cus-edit" (variable value &optional comment))
(declare-function make-term "term" (name program &optional startfile &rest switches))
(declare-function term-char-mode "term" ())
(declare-function term-emulate-terminal "term" (proc str))
(declare-function term-mode "term" ())
(defvar term-command-function)
(defvar term-height)
(defvar term-terminal-undecoded-bytes)
(defvar term-width)

(defgroup contexture-sessions nil
  "The list of the sessions of all agents."
  :group 'contexture
  :prefix "contexture-sessions-")

(defcustom contexture-sessions-programs
  '(("claude" "claude" "--resume" id)
    ("codex" "codex" "resume" id)
    ("gemini" "gemini" "--resume" id)
    ("qwen" "qwen" "--resume" id)
    ("opencode" "opencode" "-s" id)
    ("copilot" "copilot" "--resume" id)
    ("cursor" "cursor-agent" "--resume" id))
  "How agents go on with a session: the name of each, a program and arguments.
The symbol `id' stands for the id that the agent gave the session.  No
shell reads the arguments."
  :type '(alist :key-type (string :tag "Agent")
                :value-type (repeat (choice string (const id))))
  :risky t
  :package-version '(contexture . "0.1.0"))

(defface contexture-sessions-waiting '((t :inherit warning :weight bold))
  "Face of a session whose agent waits for you."
  :group 'contexture-sessions)

(defface contexture-sessions-working '((t :inherit success))
  "Face of a session whose agent is at work."
  :group 'contexture-sessions)

(defconst contexture-sessions-buffer "*contexture: sessions*"
  "Name of the buffer that lists the sessions of all agents.")

(defconst contexture-sessions--most-facts 3000
  "Number of tokens above which some facts of a session are not copied.")

(defconst contexture-sessions--lines 60
  "Number of sessions that are shown at first, and of further ones at a time.
Drawing more than a window shows would be felt as one types.")

(defconst contexture-sessions--changed-most 50
  "Number of sessions that are asked for after a change, the latest first.")

(defconst contexture-sessions--garbage-most (* 64 1024 1024)
  "Number of bytes of garbage that may pile up while the user types a search.")

(defconst contexture-sessions--soon 0.1
  "Seconds to wait for further changes before the list is brought up to date.")

(defconst contexture-sessions--every 5
  "Seconds between looks at the sessions while the list is shown.
No event tells that an agent was killed, and ages grow by themselves.")

(defconst contexture-sessions--watched-most 200
  "Maximum number of folders that are watched.")

(defconst contexture-sessions--longest 300
  "Maximum width of a text in the list, in columns.  The server's are shorter.")

(defconst contexture-sessions--deepest 8
  "Depth beyond which the sessions of subagents are shown no deeper.")

(defconst contexture-sessions--fields
  '("session" "id" "project" "tokens" "updated" "agent" "agent-session" "folder"
    "branch" "machine" "last-words" "part-of" "state" "since" "told")
  "Members of sessions that the list shows.")

;;; The sessions

(defvar-local contexture-sessions--all nil
  "Hash table from the id of each session to the server's entry.")

(defvar-local contexture-sessions--order nil
  "The sessions in their order as (SESSION . DEPTH), or nil if they changed.")

(defvar-local contexture-sessions--texts nil
  "Hash table from the id of a session to the text in which words are sought.")

(defvar-local contexture-sessions--project nil
  "Folder of the project whose sessions are listed, or nil for those of all.")

(defvar-local contexture-sessions--query ""
  "Words that the listed sessions have.")

(defvar-local contexture-sessions--hits nil
  "Ids of sessions whose messages have the words, as far as the server told.")

(defvar-local contexture-sessions--most contexture-sessions--lines
  "Number of sessions to show.")

(defvar-local contexture-sessions--timer nil
  "Timer after which the list is brought up to date, or nil.")

(defun contexture-sessions--params (&rest more)
  "Return parameters of `list-sessions' for this buffer, with MORE of them."
  (append (contexture--plist :project contexture-sessions--project)
          (list :fields contexture-sessions--fields)
          more))

(defun contexture-sessions--fetch ()
  "Ask for all sessions in short pages, and show the first ones at once.
Sessions that are shown stay until all have come."
  (let ((buffer (current-buffer))
        (anew (> (hash-table-count contexture-sessions--all) 0))
        (fresh (make-hash-table :test #'equal)))
    (cl-labels
        ((ask (params)
           (contexture-request-async
            'list-sessions (append params (list :max-bytes contexture--page-bytes))
            :success #'receive :error #'contexture-conversations--show-error))
         (receive (page)
           (contexture--with-live-buffer buffer
             (let ((next (plist-get page :next))
                   (is-first (zerop (hash-table-count fresh))))
               (dolist (session (plist-get page :items))
                 (puthash (plist-get session :id) session fresh)
                 ;; Texts are made page by page, so that no search has to make them all.
                 (contexture-sessions--text session t))
               (unless (and next anew)
                 (setq contexture-sessions--all fresh
                       contexture-sessions--order nil)
                 ;; Sorting many sessions and drawing them are steps of their own.
                 (cond (is-first (contexture-sessions--show))
                       ((null next)
                        (contexture-sessions--ordered)
                        (contexture--later #'contexture-sessions--show-in buffer))))
               (when next
                 (ask (list :cursor next)))))))
      (ask (contexture-sessions--params)))))

(defun contexture-sessions--forget ()
  "Forget all sessions."
  (setq contexture-sessions--order nil)
  (clrhash contexture-sessions--all)
  (clrhash contexture-sessions--texts))

(defun contexture-sessions--update ()
  "Ask for the sessions that changed last, and show them."
  (setq contexture-sessions--timer nil)
  (let ((buffer (current-buffer)))
    (contexture-request-async
     'list-sessions
     (contexture-sessions--params :limit contexture-sessions--changed-most)
     :success
     (lambda (sessions)
       (contexture--with-live-buffer buffer
         (dolist (session sessions)
           (contexture-sessions--text session t)
           (puthash (plist-get session :id) session contexture-sessions--all))
         (setq contexture-sessions--order nil)
         (contexture-sessions--show)))
     :error #'ignore)))

(defvar contexture-sessions--clock nil
  "Timer that looks at the sessions while the list is open, or nil.")

(defun contexture-sessions--look ()
  "Bring the list up to date if it is shown and nothing else will do so."
  (contexture--with-live-buffer (get-buffer contexture-sessions-buffer)
    (when (and (get-buffer-window nil 'visible)
               (null contexture-sessions--timer)
               (contexture-running-p))
      (contexture-sessions--update))))

(defun contexture-sessions--told (method _params)
  "Bring the list up to date soon if METHOD, a notification, is about sessions."
  (when (memq method '(session-changed agents-changed))
    (if-let* ((buffer (get-buffer contexture-sessions-buffer)))
        (with-current-buffer buffer
          (unless contexture-sessions--timer
            (setq contexture-sessions--timer
                  (run-with-timer contexture-sessions--soon nil
                                  (lambda ()
                                    (contexture--with-live-buffer buffer
                                      (contexture-sessions--update)))))))
      (contexture-unwatch #'contexture-sessions--told))))

;;;; Order and search

(defun contexture-sessions--key (session)
  "Return an integer by which SESSION is sorted: the lowest comes first.
Sessions that wait for the user come first, then those that run, then
the others by their last message.  Quiet sessions and ended ones are
listed together."
  (- (* 100000000000 (or (plist-get '(:waiting 0 :working 1 :call-open 2 :idle 3)
                                    (plist-get session :state))
                         4))
     (plist-get session :updated)))

(defun contexture-sessions--text (session &optional anew)
  "Return the text of SESSION in which words are sought, in lower case.
Make it again if ANEW is non-nil, since the session may have changed."
  (let ((id (plist-get session :id)))
    (or (and (not anew) (gethash id contexture-sessions--texts))
        (puthash id (downcase
                     (mapconcat (lambda (key) (or (plist-get session key) ""))
                                '(:session :agent :project :folder :branch :machine :last-words)
                                "\n"))
                 contexture-sessions--texts))))

(defun contexture-sessions--at-depth (keyed depth)
  "Return the sessions of KEYED in their order, each as (SESSION . DEPTH).
KEYED is a list of (KEY . SESSION), which is changed."
  (mapcar (pcase-lambda (`(,_ . ,session)) (cons session depth))
          (sort keyed #'car-less-than-car)))

(defun contexture-sessions--ordered ()
  "Return all sessions as (SESSION . DEPTH), the first one first.
The sessions of subagents come below those to which they belong."
  (or contexture-sessions--order
      (let ((parts (make-hash-table :test #'equal))
            wholes ordered)
        (maphash (lambda (_ session)
                   (let ((whole (plist-get session :part-of))
                         (keyed (cons (contexture-sessions--key session) session)))
                     (if (and whole (gethash whole contexture-sessions--all))
                         (push keyed (gethash whole parts))
                       (push keyed wholes))))
                 contexture-sessions--all)
        (while (or wholes (> (hash-table-count parts) 0))
          ;; Sessions that belong to each other in a circle have no place.
          (unless wholes
            (maphash (lambda (_ keyed) (setq wholes (nconc keyed wholes))) parts)
            (clrhash parts))
          (let ((next (contexture-sessions--at-depth wholes 0)))
            (setq wholes nil)
            (while next
              (pcase-let* ((`(,session . ,depth) (car next))
                           (id (plist-get session :id)))
                (push (pop next) ordered)
                (setq next (nconc (contexture-sessions--at-depth
                                   (gethash id parts)
                                   (min contexture-sessions--deepest (1+ depth)))
                                  next))
                (remhash id parts)))))
        (setq contexture-sessions--order (nreverse ordered)))))

(defun contexture-sessions--matching ()
  "Return those of the ordered sessions that have the sought words."
  (let ((words (split-string (downcase contexture-sessions--query)))
        (ordered (contexture-sessions--ordered)))
    (if (null words) ordered
      (cl-remove-if-not
       (lambda (entry)
         (or (member (plist-get (car entry) :id) contexture-sessions--hits)
             (let ((text (contexture-sessions--text (car entry))))
               (cl-every (lambda (word) (string-search word text)) words))))
       ordered))))

;;;; Lines

(defun contexture-sessions--state (session)
  "Return the state of SESSION as a short text with its face."
  (pcase (plist-get session :state)
    (:waiting (propertize "waits" 'face 'contexture-sessions-waiting
                          'help-echo "The agent waits until you allow a tool"))
    (:working (propertize "working" 'face 'contexture-sessions-working))
    (:call-open (propertize "call open" 'face 'contexture-sessions-working
                            'help-echo "A call has no result yet; it runs, or \
waits until you allow it.\nThe hooks of contexture setup would tell"))
    (:idle "idle")
    (:ended (propertize "ended" 'face 'shadow))
    (_ "")))

(defun contexture-sessions--tokens (number)
  "Return NUMBER of tokens as a short text."
  (cond ((< number 1000) (number-to-string number))
        ((< number 1000000) (format "%dk" (/ number 1000)))
        (t (format "%.1fM" (/ number 1000000.0)))))

(defun contexture-sessions--place (session)
  "Return where SESSION worked, as text: its machine, its folder, and the branch."
  (let ((machine (plist-get session :machine))
        (project (plist-get session :project))
        (folder (plist-get session :folder))
        (branch (plist-get session :branch)))
    (concat (if machine (concat machine ": ") "")
            (if project (contexture--last-name project) "")
            (if folder (concat "/" (contexture--last-name folder)) "")
            (if branch (concat " " branch) ""))))

(defun contexture-sessions--words (session)
  "Return the last words of SESSION, as text, and since when a call is open."
  (concat (if (eq (plist-get session :state) :call-open)
              (format "a call is open since %s; "
                      (contexture-conversations--time (plist-get session :since)))
            "")
          (or (plist-get session :last-words) "")))

(defun contexture-sessions--entry (session depth)
  "Return the entry of SESSION for the list, which DEPTH others stand above."
  (list (plist-get session :id)
        (vector (contexture-sessions--state session)
                (contexture--cut (or (plist-get session :agent) "contexture")
                                 contexture-sessions--longest)
                (contexture-list--age
                 (max 0 (- (truncate (float-time)) (plist-get session :updated))))
                (contexture-sessions--tokens (plist-get session :tokens))
                (contexture--cut (concat (make-string (* 2 depth) ?\s)
                                         (if (> depth 0) "└ " "")
                                         (plist-get session :session))
                                 contexture-sessions--longest)
                (propertize (contexture--cut (contexture-sessions--place session)
                                             contexture-sessions--longest)
                            'face 'shadow)
                (contexture--cut (contexture-sessions--words session)
                                 contexture-sessions--longest))))

(defun contexture-sessions--show-in (buffer)
  "Show the sessions of BUFFER, if it still exists."
  (contexture--with-live-buffer buffer
    (contexture-sessions--show)))

(defun contexture-sessions--show ()
  "Show the sessions, and stay at the one at point, or else at its line."
  (let* ((inhibit-read-only t)
         ;; Collecting the garbage of a list takes longer than drawing it.
         (gc-cons-threshold most-positive-fixnum)
         (id (tabulated-list-get-id))
         (line (line-number-at-pos))
         (ordered (contexture-sessions--matching))
         (more (- (length ordered) contexture-sessions--most))
         (window (get-buffer-window nil t))
         (start (and window (line-number-at-pos (window-start window)))))
    (cl-flet ((at-line (number)
                (save-excursion (goto-char (point-min))
                                (forward-line (1- number))
                                (point))))
      (setq tabulated-list-entries
            (mapcar (pcase-lambda (`(,session . ,depth))
                      (contexture-sessions--entry session depth))
                    (seq-take ordered contexture-sessions--most)))
      (tabulated-list-print t)
      (save-excursion
        (goto-char (point-max))
        (cond ((null ordered)
               (insert (cond ((not (string-blank-p contexture-sessions--query))
                              "No session has these words; s searches for others.\n")
                             (contexture-sessions--project
                              "No session is of this project; a shows those of all.\n")
                             (t "There is no session yet.\n"))))
              ((> more 0)
               (insert (format "%s more; + shows further ones, s searches in all\n"
                               (contexture--number more))))))
      (contexture-sessions--head ordered)
      (unless (and id (equal id (tabulated-list-get-id)))
        (goto-char (at-line line)))
      (when window
        (set-window-point window (point))
        (set-window-start window (at-line start) t)))))

(defun contexture-sessions--head (ordered)
  "Say in the header line what ORDERED, the listed sessions, are."
  (let ((waiting 0) (working 0))
    (pcase-dolist (`(,session . ,_) ordered)
      (pcase (plist-get session :state)
        (:waiting (cl-incf waiting))
        ((or :working :call-open) (cl-incf working))))
    (setq header-line-format
          (contexture--header-line
           (concat (contexture--count (length ordered) "session")
                   (if contexture-sessions--project
                       (format " of %s" (contexture--last-name contexture-sessions--project))
                     " of all projects")
                   (format "; %d waiting, %d working" waiting working)
                   (if (string-blank-p contexture-sessions--query) ""
                     (format "; with \"%s\"" contexture-sessions--query)))))))

(defun contexture-sessions--at-point ()
  "Return the session at point, or nil."
  (gethash (tabulated-list-get-id) contexture-sessions--all))

(defun contexture-sessions--chosen ()
  "Return the session at point, or signal an error."
  (or (contexture-sessions--at-point)
      (user-error "There is no session at point")))

;;; The buffer

(defvar contexture-sessions-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-sessions-read)
    (define-key map [mouse-2] #'contexture-sessions-read)
    (define-key map "r" #'contexture-sessions-resume)
    (define-key map "c" #'contexture-sessions-copy-facts)
    (define-key map "k" #'contexture-sessions-hide)
    (define-key map "s" #'contexture-sessions-search)
    (define-key map "/" #'contexture-sessions-search)
    (define-key map "a" #'contexture-sessions-toggle-project)
    (define-key map "+" #'contexture-sessions-show-more)
    (define-key map "q" #'contexture-sessions-quit)
    map)
  "Keymap of `contexture-sessions-mode'.")

(define-derived-mode contexture-sessions-mode tabulated-list-mode "Sessions"
  "Major mode for the list of the sessions of all agents.
\\<contexture-sessions-mode-map>\
\\[contexture-sessions-read] reads the session at point, \
\\[contexture-sessions-resume] goes on with it in its agent,
\\[contexture-sessions-copy-facts] copies its facts into a new conversation, and
\\[contexture-sessions-hide] hides it.  \\[contexture-sessions-search] searches as you \
type, and \\[contexture-sessions-toggle-project] lists the sessions
of all projects, or of this one again.

See Info node `(contexture)Sessions of agents'.

\\{contexture-sessions-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq-local tabulated-list-format
              [("State" 9 nil) ("Agent" 9 nil) ("Age" 5 nil :right-align t)
               ("Tokens" 6 nil :right-align t) ("Session" 34 nil) ("Place" 22 nil)
               ("Last words" 0 nil)]
              contexture-sessions--all (make-hash-table :test #'equal)
              contexture-sessions--texts (make-hash-table :test #'equal)
              revert-buffer-function #'contexture-sessions--revert)
  (add-hook 'kill-buffer-hook #'contexture-sessions--end nil t))

;;;###autoload
(defun contexture-sessions (&optional all)
  "List the sessions of all agents in this project, those that wait for you first.
Without a project, or with a prefix argument ALL, list those of all projects."
  (interactive "P")
  (let ((project (and (not all) (contexture--project-root))))
    (pop-to-buffer-same-window (get-buffer-create contexture-sessions-buffer))
    (unless (derived-mode-p 'contexture-sessions-mode)
      (contexture-sessions-mode)
      (contexture-watch #'contexture-sessions--told '(session-changed agents-changed))
      (setq contexture-sessions--clock
            (run-with-timer contexture-sessions--every contexture-sessions--every
                            #'contexture-sessions--look)))
    (setq contexture-sessions--project project
          contexture-sessions--query ""
          contexture-sessions--most contexture-sessions--lines)
    (contexture-sessions--forget)
    (contexture-sessions--fetch)
    (contexture-sessions--import-all)))

(defun contexture-sessions--revert (&rest _)
  "Look again at what agents recorded, and ask for all sessions."
  (contexture-sessions--fetch)
  (contexture-sessions--import-all))

(defun contexture-sessions-quit ()
  "Close the list, so that no file is watched any more."
  (interactive)
  (quit-window t))

(defun contexture-sessions--end ()
  "Stop following the server and the files."
  (contexture-unwatch #'contexture-sessions--told)
  (dolist (timer (list contexture-sessions--timer contexture-sessions--clock))
    (when (timerp timer)
      (cancel-timer timer)))
  (contexture-sessions--watch-none))

(defun contexture-sessions-show-more ()
  "Show further sessions."
  (interactive)
  (setq contexture-sessions--most (+ contexture-sessions--most contexture-sessions--lines))
  (contexture-sessions--show))

(defun contexture-sessions-toggle-project ()
  "List the sessions of all projects, or only those of the one at point again."
  (interactive)
  (setq contexture-sessions--project
        (if contexture-sessions--project nil
          (or (plist-get (contexture-sessions--at-point) :project)
              (user-error "The session at point has no project"))))
  (contexture-sessions--forget)
  (contexture-sessions--fetch))

;;;; Searching as one types

(defvar contexture-sessions-history nil
  "Minibuffer history of searches in the list of sessions.")

(defvar contexture-sessions--asked nil
  "Query that the server was asked for last.")

(defun contexture-sessions-search ()
  "List only sessions that have some words, and show them as you type.
Words are sought in titles, agents, folders, branches and last words, and
in all messages.  Empty input lists all sessions again."
  (interactive)
  (let ((buffer (current-buffer))
        (before contexture-sessions--query)
        (done nil)
        ;; A collection of garbage between two keys would be felt more than the search.
        (gc-cons-threshold (max gc-cons-threshold contexture-sessions--garbage-most)))
    (unwind-protect
        (progn
          (minibuffer-with-setup-hook
              (lambda ()
                (add-hook 'after-change-functions
                          (lambda (&rest _)
                            (let ((query (minibuffer-contents-no-properties)))
                              (contexture--with-live-buffer buffer
                                (contexture-sessions--seek query))))
                          nil t))
            (read-from-minibuffer "Sessions with: " nil nil nil 'contexture-sessions-history))
          (setq done t))
      (unless done
        (contexture--with-live-buffer buffer
          (contexture-sessions--seek before))))))

(defun contexture-sessions--seek (query)
  "List the sessions that have the words of QUERY."
  (unless (equal query contexture-sessions--query)
    (setq contexture-sessions--query query
          contexture-sessions--hits nil
          contexture-sessions--most contexture-sessions--lines)
    (contexture-sessions--show)
    (unless (string-blank-p query)
      (contexture-sessions--ask-messages (current-buffer) query))))

(defun contexture-sessions--ask-messages (buffer query)
  "Ask the server in which messages the words of QUERY are, for BUFFER.
During such a call, ask only for the last query."
  (if contexture-sessions--asked
      (setq contexture-sessions--asked query)
    (setq contexture-sessions--asked query)
    (let ((answered
           (lambda (hits)
             (let ((wanted contexture-sessions--asked))
               (setq contexture-sessions--asked nil)
               (contexture--with-live-buffer buffer
                 (cond ((equal query contexture-sessions--query)
                        (when hits
                          (setq contexture-sessions--hits
                                (delete-dups (contexture--pluck :id hits)))
                          (contexture-sessions--show)))
                       ((equal wanted contexture-sessions--query)
                        (contexture-sessions--ask-messages buffer wanted))))))))
      (contexture-request-async
       'list-sessions (list :query query :limit contexture-sessions--changed-most)
       :success answered :error (lambda (_) (funcall answered nil))))))

;;; What to do with a session

(defun contexture-sessions-read (&optional event)
  "Read the session at point, or where EVENT, a click, is."
  (interactive (list last-nonmenu-event))
  (when (mouse-event-p event)
    (mouse-set-point event))
  (contexture-conversation-transcript (plist-get (contexture-sessions--chosen) :id)))

(defun contexture-sessions-hide ()
  "Hide the session at point; `contexture-conversation-bring-back' shows it again.
What its agent recorded stays."
  (interactive)
  (let* ((session (contexture-sessions--chosen))
         (id (plist-get session :id))
         (buffer (current-buffer)))
    (contexture-conversations--call
     'delete-session (list :session id)
     (lambda (_)
       (contexture--with-live-buffer buffer
         (remhash id contexture-sessions--all)
         (setq contexture-sessions--order nil)
         (contexture-sessions--show))
       (contexture--message "Hid %s; %s shows it again" (plist-get session :session)
                            (contexture-conversations--key
                             'contexture-conversation-bring-back))))))

(defun contexture-sessions-copy-facts ()
  "Start a conversation with the facts of the session at point, and go there."
  (interactive)
  (let* ((session (contexture-sessions--chosen))
         (title (plist-get session :session)))
    (contexture-conversations--call
     'export-session (list :session (plist-get session :id)
                           :max-tokens contexture-sessions--most-facts)
     (lambda (facts)
       (let ((text (plist-get facts :text)))
         (if (string-empty-p text)
             (contexture--message "%s has no facts to copy" title)
           (contexture-conversations--call
            'open-session (contexture--plist :project (and (not (plist-get session :told))
                                                           (plist-get session :project)))
            (lambda (entry)
              (contexture-conversations--call
               'add-item (list :manager (plist-get entry :manager)
                               :content text
                               :metadata (list :title (concat "Facts of " title)))
               (lambda (_)
                 (contexture-conversation (plist-get entry :id))
                 (contexture--message "The facts of %s are in conversation %s"
                                      title (plist-get entry :session))))))))))))

;;;; Going on in the agent

(defun contexture-sessions--id (session)
  "Return the id that its agent gave SESSION if it is plain, else nil.
It comes from outside, and must not be taken for an option."
  (let ((id (plist-get session :agent-session)))
    (and (stringp id)
         (let ((case-fold-search nil))
           (string-match-p "\\`[A-Za-z0-9][A-Za-z0-9_.:-]\\{0,127\\}\\'" id))
         id)))

(defun contexture-sessions--command (session)
  "Return the program and arguments that go on with SESSION, a list of strings."
  (let* ((agent (plist-get session :agent))
         (id (contexture-sessions--id session))
         (command (cdr (assoc agent contexture-sessions-programs))))
    (cond ((plist-get session :part-of)
           (user-error "A subagent's session goes on only in the session above it"))
          ((null agent) nil)
          ((null command)
           (contexture--user-error "Contexture cannot start %s; see the option \
contexture-sessions-programs" agent))
          ((null id)
           (user-error "The recording has no id by which its agent could find it")))
    (mapcar (lambda (word) (if (eq word 'id) id word)) command)))

(defun contexture-sessions--agent-shell (id)
  "Return the buffer of agent-shell that has the session ID, or nil."
  (cl-find-if (lambda (buffer)
                (equal id (ignore-errors
                            (map-nested-elt (buffer-local-value 'agent-shell--state buffer)
                                            '(:session :id)))))
              (cl-remove-if-not (lambda (buffer)
                                  (local-variable-p 'agent-shell--state buffer))
                                (buffer-list))))

(defun contexture-sessions-resume ()
  "Go on with the session at point in its agent.
If a buffer of agent-shell or a terminal of this command has it, go there.
Otherwise start the agent in a terminal, in the folder of the session.  A
conversation of Contexture's own goes on in its buffer."
  (interactive)
  (let* ((session (contexture-sessions--chosen))
         (id (contexture-sessions--id session))
         (shell (and id (contexture-sessions--agent-shell id))))
    (cond (shell (pop-to-buffer shell))
          ((null (plist-get session :agent))
           (contexture-conversation (plist-get session :id)))
          (t (contexture-sessions--run session)))))

(defun contexture-sessions--run (session)
  "Start the agent of SESSION in a terminal, or go to the one that runs."
  (let* ((command (contexture-sessions--command session))
         (named (or (plist-get session :folder) (plist-get session :project)))
         (folder (and named (contexture--outside-folder named)))
         (here (contexture--project-root))
         (default-directory (or folder temporary-file-directory))
         (name (format "contexture: %s %s" (plist-get session :agent)
                       (contexture-sessions--id session)))
         (program (executable-find (car command))))
    (cond ((process-live-p (get-buffer-process (concat "*" name "*")))
           (pop-to-buffer (concat "*" name "*")))
          ((null folder)
           (contexture--user-error "The folder of the session, %s, is not here"
                                   (or named "which is not recorded")))
          ((null program)
           (contexture--user-error "The program %s is not installed" (car command)))
          ((not (contexture-sessions--agreed-p session folder here))
           (user-error "Nothing was started"))
          (t
           (require 'term)
           (with-current-buffer (apply #'make-term name program nil (cdr command))
             (term-mode)
             (term-char-mode)
             (contexture-sessions--tame (get-buffer-process (current-buffer)))
             (pop-to-buffer (current-buffer)))))))

;; An agent does what the settings of its folder say, and a recording may name any folder.
(defun contexture-sessions--agreed-p (session folder here)
  "Return non-nil if the agent of SESSION may be started in FOLDER.
It may in HERE, the root of this buffer's project or nil, and in the project of
SESSION if more than a recording names that.  Otherwise the user is asked."
  (or (cl-some (lambda (project)
                 (when-let* ((root (contexture--outside-folder project)))
                   (file-in-directory-p folder root)))
               (list here (and (not (plist-get session :told)) (plist-get session :project))))
      (contexture--y-or-n-p (contexture--format "Start %s in %s? " (plist-get session :agent)
                                                (contexture--abbreviate folder)))))

(defconst contexture-sessions--answer-seconds 0.1
  "Number of seconds for which an agent may leave an answer of its terminal unread.
Emacs waits as long; after that, its terminal answers no more.")

(defun contexture-sessions--tame (process)
  "Let the terminal of PROCESS, an agent, only draw what the agent prints.
A model or a recording may have said that.  Term would visit the files and go
to the folders that it names, on other machines as well.  It would also do
what takes all memory, and wait without end for its answers to be read."
  (with-current-buffer (process-buffer process)
    (setq-local term-command-function #'ignore)
    (let ((folder default-directory)
          (obey (symbol-function 'term-handle-ansi-escape)))
      (set-process-filter
       process
       (lambda (process text)
         (unwind-protect
             (cl-letf (((symbol-function 'term-handle-ansi-escape)
                        (apply-partially #'contexture-sessions--obey obey)))
               (contexture--inertly (term-emulate-terminal process text)))
           (contexture--with-live-buffer (process-buffer process)
             (setq default-directory folder)
             ;; Of what never ends, the rest would be looked at each time.
             (when (> (length term-terminal-undecoded-bytes) 4096)
               (setq term-terminal-undecoded-bytes nil)))))))))

(defun contexture-sessions--obey (obey process numbers char)
  "Call OBEY, of Term, for the sequence with NUMBERS and CHAR from PROCESS.
No number but that of a face is larger than the screen.  Answers that PROCESS
does not read are the last ones."
  (cond ((not (eq char ?n))
         (let ((most (max term-width term-height)))
           (funcall obey process
                    (if (eq char ?m) numbers
                      (mapcar (lambda (number) (if number (min number most) number)) numbers))
                    char)))
        ((not (process-get process 'contexture-unread))
         (with-timeout (contexture-sessions--answer-seconds
                        (process-put process 'contexture-unread t))
           (funcall obey process numbers char)))))

;;; Other machines

;; The program exchanges everything over ssh by itself; here it is only
;; started, and its one line shown.

(defvar contexture-sync-history nil
  "Hosts with which sessions and memories were exchanged, the last one first.")

(defvar contexture-sync--process nil
  "The process that exchanges with another machine, or nil.")

(defconst contexture-sync--pause 600
  "Number of seconds after an exchange in which none begins by itself.")

(defvar contexture-sync--times nil
  "Alist of (HOST . TIME): when an exchange with each host began.")

(defun contexture-sync--host ()
  "Return the host of this buffer's file as ssh names it, or nil.
Nothing is asked of the host."
  (when (contexture--remote-p default-directory)
    (let ((host (file-remote-p default-directory 'host))
          (user (file-remote-p default-directory 'user)))
      (and host
           (member (file-remote-p default-directory 'method)
                   '("ssh" "sshx" "scp" "scpx" "rsync"))
           (not (file-remote-p default-directory 'hop))
           (not (string-search "#" host)) ; a port
           (if user (concat user "@" host) host)))))

(defun contexture-sync--remote ()
  "Exchange with the host of this buffer's file by itself.
Do nothing unless `contexture-sync-hosts' allows it."
  (when-let* ((host (contexture-sync--host))
              ((cdr (assoc host contexture-sync-hosts)))
              ((not (process-live-p contexture-sync--process)))
              (last (or (cdr (assoc host contexture-sync--times)) 0))
              ((> (- (float-time) last) contexture-sync--pause)))
    (contexture-sync host)))

(defun contexture-sync--allow (host)
  "Ask whether to exchange with HOST by itself, if it has this buffer's file.
The answer is kept in `contexture-sync-hosts'."
  (when (and (equal host (contexture-sync--host))
             (not (assoc host contexture-sync-hosts)))
    (customize-save-variable
     'contexture-sync-hosts
     (cons (cons host (contexture--y-or-n-p
                       (format "Exchange with %s by itself when you open files there? " host)))
           contexture-sync-hosts))))

(defun contexture-sync--hosts ()
  "Return the names of hosts in your configuration of ssh."
  (let ((file (expand-file-name "~/.ssh/config"))
        hosts)
    (when (file-readable-p file)
      (with-temp-buffer
        (insert-file-contents file)
        (while (re-search-forward "^[ \t]*host[ \t]+\\(.*\\)" nil t)
          (dolist (host (split-string (match-string 1)))
            (unless (string-match-p "[*?!]" host)
              (push host hosts))))))
    (nreverse hosts)))

;;;###autoload
(defun contexture-sync (host)
  "Exchange conversations, memories and marks with the machine HOST over ssh.
Contexture must be installed there.  What comes from there is a copy,
and is shown as one.  Nothing here is replaced.  Emacs does not wait; a
line says what came and what went.  In a buffer of that machine, Emacs
asks whether to do this by itself from now on; see
`contexture-sync-hosts'."
  (interactive
   (let ((default (or (contexture-sync--host) (car contexture-sync-history))))
     (list (completing-read (format-prompt "Exchange with host" default)
                            (delete-dups (append contexture-sync-history
                                                 (contexture-sync--hosts)))
                            nil nil nil 'contexture-sync-history default))))
  (when (or (string-blank-p host) (string-prefix-p "-" host))
    (user-error "%S is no name of a host" host))
  (when (process-live-p contexture-sync--process)
    (user-error "An exchange is running; wait until it ends"))
  (let* ((default-directory "/")       ; nothing is asked of a remote file's host
         (program (cl-loop for word in (contexture--server-command)
                           until (equal word "serve") collect word))
         (lines "")
         (process
          (with-temp-buffer           ; away from buffer-local environments
            (make-process
             :name "contexture sync" :command (append program (list "sync" "--" host))
             :connection-type 'pipe :coding 'utf-8-unix :noquery t
             :filter (lambda (_ text) (setq lines (concat lines text)))
             :sentinel (lambda (process _)
                         (unless (process-live-p process)
                           (contexture-sync--ended host process lines)))))))
    (process-send-eof process)
    (setq contexture-sync--process process)
    (setf (alist-get host contexture-sync--times nil nil #'equal) (float-time))
    (contexture--message "Exchanging with %s" host))
  (when (called-interactively-p 'any)
    (contexture-sync--allow host)))

(defun contexture-sync--ended (host process lines)
  "Say how the exchange of PROCESS with HOST ended; LINES are what it printed."
  (let ((last (car (last (split-string lines "\n" t)))))
    (contexture--message
     "%s" (contexture--visible
           (if (zerop (process-exit-status process)) (or last "Nothing was said")
             (format "The exchange with %s failed: %s" host
                     (string-remove-prefix "contexture: " (or last "no reason was given"))))))))

;;; What agents record

;; The folders in which agents record are watched while the list is open.

(defvar contexture-sessions--watches nil
  "Alist of (FOLDER . DESCRIPTOR) of the folders that are watched.")

(defvar contexture-sessions--files nil
  "Recordings that changed and are still to be read.")

(defvar contexture-sessions--reading nil
  "Timer or t while recordings are to be read or are being read.")

(defun contexture-sessions--import-all ()
  "Have the server read what agents recorded, and watch where they do."
  (contexture-request-async
   'import-sessions nil
   :success #'contexture-sessions--imported :error #'contexture-conversations--show-error))

(defun contexture-sessions--imported (done)
  "Watch where agents record, by DONE, the result of an import.
What was written there before it was watched is read once more."
  (when (contexture-sessions--watch (plist-get done :folders))
    (contexture-sessions--read-soon t)))

(defun contexture-sessions--watch (folders)
  "Watch FOLDERS for changes, as long as the list is open.
Return non-nil if one of them was not watched before."
  (let ((before contexture-sessions--watches))
    (when (get-buffer contexture-sessions-buffer)
      (dolist (name folders)
        (when-let* ((file (contexture--outside-file name "/"))
                    (folder (directory-file-name
                             (if (file-directory-p file) file (file-name-directory file)))))
          (unless (or (assoc folder contexture-sessions--watches)
                      (>= (length contexture-sessions--watches)
                          contexture-sessions--watched-most))
            ;; A system may allow no further watches.
            (when-let* ((watch (ignore-errors
                                 (file-notify-add-watch folder '(change)
                                                        #'contexture-sessions--file-changed))))
              (push (cons folder watch) contexture-sessions--watches))))))
    (not (eq before contexture-sessions--watches))))

(defun contexture-sessions--watch-none ()
  "Watch no folder any more."
  (pcase-dolist (`(,_ . ,watch) contexture-sessions--watches)
    (ignore-errors (file-notify-rm-watch watch)))
  (when (timerp contexture-sessions--reading)
    (cancel-timer contexture-sessions--reading))
  (setq contexture-sessions--watches nil
        contexture-sessions--reading nil
        contexture-sessions--files nil))

(defun contexture-sessions--file-changed (event)
  "Read the recording that EVENT, of a watched folder, is about.
If EVENT is about a new folder, read all folders again."
  (pcase event
    (`(,watch stopped . ,_)
     (setq contexture-sessions--watches
           (cl-remove watch contexture-sessions--watches :key #'cdr :test #'equal)))
    (`(,_ ,(or 'created 'changed 'renamed) . ,files)
     (let* ((file (car (last files)))
            (file (replace-regexp-in-string "-\\(?:wal\\|shm\\)\\'" "" file)))
       (cond ((string-match-p "\\.\\(?:jsonl?\\|md\\|txt\\|db\\)\\'" file)
              (contexture-sessions--read-soon file))
             ((and (eq (cadr event) 'created) (contexture--outside-folder file))
              (contexture-sessions--read-soon t)))))))

(defun contexture-sessions--read-soon (file)
  "Have the server read FILE soon, together with others; t means all places."
  (cl-pushnew file contexture-sessions--files :test #'equal)
  (unless contexture-sessions--reading
    (setq contexture-sessions--reading
          (run-with-timer contexture-sessions--soon nil #'contexture-sessions--read-files))))

(defun contexture-sessions--read-files ()
  "Have the server read the recordings that changed."
  (let* ((files contexture-sessions--files)
         (all (memq t files))
         (there (cl-remove-if-not
                 (lambda (file)
                   (when-let* ((file (contexture--outside-file file)))
                     (file-exists-p file)))
                 (remq t files)))
         (done (lambda (answer)
                 (when contexture-sessions--reading
                   (setq contexture-sessions--reading nil)
                   (contexture-sessions--imported answer)
                   (when-let* ((file (car contexture-sessions--files)))
                     (contexture-sessions--read-soon file))))))
    (setq contexture-sessions--files nil
          contexture-sessions--reading t)
    (if (or all there)
        (contexture-request-async
         'import-sessions (unless all (list :paths there))
         :success done :error (lambda (_) (funcall done nil)))
      (funcall done nil))))

(provide 'contexture-sessions)
;;; contexture-sessions.el ends here
