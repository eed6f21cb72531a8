;;; contexture-session.el --- Open and name conversations  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A session is a conversation with a model: all its messages, and which of
;; them are in view.  The server keeps it.  One session is the current one;
;; commands act on it, except in a buffer that shows another.
;;
;; This file opens, names, deletes and restores sessions;
;; contexture-session-edit.el changes them, and contexture-session-show.el
;; shows them.  Nothing is lost: you can bring back whatever you delete,
;; prune or roll back, and the message says how.

;;; Code:

(require 'contexture)
(require 'contexture-sets)
(eval-when-compile (require 'subr-x))

(defgroup contexture-session nil
  "Conversations with a model."
  :group 'contexture
  :prefix "contexture-session-")

(defface contexture-session-warning '((t :inherit warning))
  "Face of warnings that a session fills most of its model's window."
  :group 'contexture-session)

(defvar contexture-session-history nil
  "History of chosen sessions.")

(defvar-local contexture-session--shown nil
  "Id of the session that this buffer shows; nil means the current one.")

(defconst contexture-session--topics
  '(session-changed context-pruned context-summarized checkpoint-created)
  "Topics of notifications about sessions.")

;;;; Words

(defun contexture-session--number (number)
  "Return NUMBER, an integer, with commas between the thousands."
  (let ((text (number-to-string (or number 0))))
    (while (string-match "\\`\\(-?[0-9]+\\)\\([0-9]\\{3\\}\\)" text)
      (setq text (replace-match "\\1,\\2" nil nil text)))
    text))

(defun contexture-session--size (session)
  "Return a phrase for the size of SESSION, an entry of the server."
  (format "%s, %s"
          (contexture-session--many (plist-get session :messages) "message")
          (contexture-session--many (plist-get session :tokens) "token")))

(defun contexture-session--many (number noun)
  "Return NUMBER, which may be large or nil, with NOUN."
  (format "%s %s%s" (contexture-session--number number) noun
          (if (eql number 1) "" "s")))

(defun contexture-session--many-of (before after)
  "Return a phrase for BEFORE tokens, and AFTER if it differs."
  (if (eql before after)
      (contexture-session--many after "token")
    (format "%s → %s" (contexture-session--number before)
            (contexture-session--many after "token"))))

(defun contexture-session--time (seconds)
  "Return a phrase for SECONDS, Unix time, that stays true as time goes by."
  (format-time-string
   (if (equal (format-time-string "%F") (format-time-string "%F" seconds))
       "%R" "%F %R")
   seconds))

(defun contexture-session--key (command)
  "Return the key of COMMAND as text."
  (substitute-command-keys (format "\\[%s]" command)))

;;;; Calls

(defun contexture-session--params (&rest plist)
  "Return PLIST without empty entries, for the session of this buffer."
  (append (contexture--plist :session contexture-session--shown)
          (apply #'contexture--plist plist)))

(defun contexture-session--call (method params success)
  "Call METHOD with PARAMS; then call SUCCESS with the result.
An error is shown, with a command that helps if there is one."
  (contexture-request-async method params
                            :success success :error #'contexture-session--show-error))

(defun contexture-session--show-error (problem)
  "Show PROBLEM, the error of a call, and a command that helps."
  (contexture--message "Contexture: %s" (contexture-session--error-text problem)))

(defun contexture-session--error-text (problem)
  "Return the message for PROBLEM, the error of a call."
  (if (contexture-session--none-open-p problem)
      (format "no session is open; %s opens one"
              (contexture-session--key 'contexture-session-open))
    (contexture--error-text problem)))

(defun contexture-session--none-open-p (problem)
  "Return non-nil if PROBLEM, the error of a call, says that no session is open."
  (and (eq (plist-get (plist-get problem :data) :kind) :no-such-session)
       (string-prefix-p "no session is open" (plist-get problem :message))))

(defun contexture-session--announce (session method)
  "Notify all watching functions that METHOD changed SESSION, an entry.
This is for changes that the server does not announce."
  (run-hook-with-args 'contexture-notification-functions 'session-changed
                      (list :session (plist-get session :session)
                            :id (plist-get session :id)
                            :method method
                            :messages (plist-get session :messages))))

;;;; Completion

(defun contexture-session--name-entries (sessions)
  "Return an alist from unique names to SESSIONS."
  (let ((seen (make-hash-table :test #'equal)))
    (mapcar (lambda (session)
              (let ((name (plist-get session :session)))
                (prog1 (cons (if (gethash name seen)
                                 (format "%s <%s>" name (plist-get session :id))
                               name)
                             session)
                  (puthash name t seen))))
            sessions)))

(defun contexture-session--describe (session)
  "Return the annotation of SESSION."
  (format "%s, %s%s" (contexture-session--size session)
          (contexture-sets--age (or (plist-get session :deleted)
                                    (plist-get session :updated)))
          (cond ((plist-get session :deleted) " deleted")
                ((plist-get session :current) ", current")
                (t ""))))

(defun contexture-session--choose (prompt sessions &optional default new)
  "Ask the user with PROMPT for one of SESSIONS.
DEFAULT is an id.  With NEW, allow a new name.  Return the session, or
the new name."
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
          (user-error "No session was chosen")))))

(defun contexture-session--table (names known)
  "Return a completion table of NAMES; KNOWN has the session of each."
  (contexture--table
   names 'contexture-session
   (lambda (name)
     (if-let* ((session (gethash name known)))
         (concat (propertize " " 'display '(space :align-to 32))
                 (contexture-session--describe session))
       ""))))

(defun contexture-session--read (prompt &optional new)
  "Ask with PROMPT for a session, by default this buffer's.
With NEW, allow the name of a new one."
  (let ((sessions (contexture--ask 'list-sessions nil)))
    (unless (or sessions new)
      (contexture--user-error "There is no session yet; %s starts one"
                  (contexture-session--key 'contexture-session-new)))
    (contexture-session--choose
     prompt sessions
     (unless new
       (or contexture-session--shown
           (plist-get (cl-find-if (lambda (it) (plist-get it :current)) sessions)
                      :id)))
     new)))

(defun contexture-session--id (session)
  "Return the id of SESSION, an entry, or SESSION itself, an id or a name."
  (if (stringp session) session (plist-get session :id)))

(defun contexture-session--name (session)
  "Return the name of SESSION, an entry, or SESSION itself."
  (if (stringp session) session (plist-get session :session)))

;;;; Opening

;;;###autoload
(defun contexture-session-open (session &optional manager)
  "Make SESSION the current one; start it if it does not exist.
With a prefix argument, a new session shows the items of this buffer's
context MANAGER, a name or a list of layers."
  (interactive
   (list (contexture-session--name (contexture-session--read "Open session" t))
         (and current-prefix-arg (contexture-current-context))))
  (contexture-session--call
   'open-session
   (contexture--plist :name session
                      (if (listp manager) :managers :manager) manager
                      :project (contexture--project-root))
   #'contexture-session--tell-opened))

(defun contexture-session--tell-opened (session)
  "Tell the user and all watching functions that SESSION is the current one."
  (contexture-session--announce session "open-session")
  (if (plist-get session :created-now)
      (contexture--message "Started session %s%s" (plist-get session :session)
               (let ((context (or (plist-get session :managers)
                                  (plist-get session :manager))))
                 (if (and (stringp context) (string-prefix-p "*session " context))
                     ""
                   (concat ", which shows the items of "
                           (contexture--label context)))))
    (contexture--message "Session %s is open (%s)" (plist-get session :session)
             (contexture-session--size session))))

;;;###autoload
(defun contexture-session-new (&optional name manager)
  "Start a session called NAME and make it the current one.
If NAME is empty, the server chooses one.  With a prefix argument, the
session shows the items of this buffer's context MANAGER, a name or a
list of layers."
  (interactive
   (list (read-string "Start session (empty for any name): ")
         (and current-prefix-arg (contexture-current-context))))
  (let ((name (string-trim (or name ""))))
    (contexture-session-open (unless (string-empty-p name) name) manager)))

;;;###autoload
(defun contexture-session-switch (session)
  "Make SESSION, which must exist, the current one."
  (interactive (list (contexture-session--id
                      (contexture-session--read "Switch to session"))))
  (contexture-session--call
   'open-session (list :name session :create nil)
   (lambda (entry)
     (contexture-session--announce entry "switch-session")
     (contexture--message "Session %s is open (%s)" (plist-get entry :session)
              (contexture-session--size entry)))))

;;;###autoload
(defun contexture-session-rename (session name)
  "Give SESSION another NAME."
  (interactive
   (let* ((session (contexture-session--read "Rename session"))
          (old (contexture-session--name session)))
     (list (contexture-session--id session)
           (read-string (contexture--format "Rename %s to: " old) nil nil old))))
  (when (string-blank-p name)
    (user-error "A session needs a name"))
  (contexture-session--call
   'rename-session (list :session session :name (string-trim name))
   (lambda (entry)
     (contexture--message "The session is now called %s" (plist-get entry :session)))))

;;;; Deleting and bringing back

;;;###autoload
(defun contexture-session-delete (session)
  "Delete SESSION.  `contexture-session-restore' brings it back."
  (interactive (list (contexture-session--id
                      (contexture-session--read "Delete session"))))
  (contexture-session--call
   'delete-session (list :session session)
   (lambda (entry)
     (contexture--message "Deleted session %s (%s); %s brings it back"
              (plist-get entry :session) (contexture-session--size entry)
              (contexture-session--key 'contexture-session-restore)))))

;;;###autoload
(defun contexture-session-restore (session)
  "Bring back SESSION, which was deleted."
  (interactive
   (let ((deleted (cl-remove-if-not
                   (lambda (it) (plist-get it :deleted))
                   (contexture--ask 'list-sessions '(:deleted t)))))
     (unless deleted
       (user-error "No session is deleted"))
     (list (contexture-session--id
            (contexture-session--choose "Bring back session" deleted)))))
  (contexture-session--call
   'restore-session (list :session session)
   (lambda (entry)
     (contexture--message "Session %s is back (%s); %s switches to it"
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
  "Keymap of the commands for sessions.
It is behind `n' in the keymap of the package.")
(fset 'contexture-session-map contexture-session-map)

(provide 'contexture-session)
;;; contexture-session.el ends here
