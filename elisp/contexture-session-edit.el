;;; contexture-session-edit.el --- Change a conversation, and undo it  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Commands that change a session: adding to it, taking checkpoints and
;; going back to them, pruning and summarizing, and its settings.  Commands
;; do not wait for the server, except for the names to choose from.

;;; Code:

(require 'contexture-session)
(eval-when-compile (require 'subr-x))

;;;; Adding

(defconst contexture-session--roles '("user" "assistant" "system" "tool")
  "Roles of messages, the usual one first.")

(defun contexture-session--read-role (ask)
  "Return the role of a message: the user, or a chosen one if ASK."
  (if ask
      (completing-read (format-prompt "Role" "user") contexture-session--roles
                       nil t nil nil "user")
    "user"))

;;;###autoload
(defun contexture-session-add-message (text &optional role)
  "Append TEXT to the session as a message of the user.
With a prefix argument, choose another ROLE."
  (interactive
   (let ((role (contexture-session--read-role current-prefix-arg)))
     (list (read-string (contexture--format "Message of the %s: " role)) role)))
  (when (string-blank-p text)
    (user-error "The message is empty"))
  (contexture-session--call
   'add-message
   (contexture-session--params :content text :role (intern (or role "user")))
   (lambda (result)
     (contexture--message "Added %s to session %s (%s)" (plist-get result :id)
              (plist-get result :session) (contexture-session--size result)))))

;;;###autoload
(defun contexture-session-add-region (beg end &optional role)
  "Append the text between BEG and END to the session as a message.
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
  "Take a checkpoint of the session, to which you can go back.
TEXT describes it."
  (interactive (list (read-string "Describe the checkpoint: ")))
  (contexture-session--call
   'checkpoint
   (contexture-session--params
    :message (unless (string-blank-p (or text "")) (string-trim text)))
   (lambda (result)
     (if result
         (contexture--message "Took %s of session %s at turn %d; %s goes back to it"
                  (plist-get result :checkpoint) (plist-get result :session)
                  (plist-get result :turn)
                  (contexture-session--key 'contexture-session-rollback))
       (contexture--message "This session keeps no checkpoints; its setting \
\"versioning\" is off (%s)" (contexture-session--key 'contexture-session-configure))))))

(defun contexture-session--checkpoint-text (checkpoint turns)
  "Return the annotation of CHECKPOINT of a session with TURNS turns."
  (let ((lost (max 0 (- turns (plist-get checkpoint :turn)))))
    (format "turn %d, %s%s, %s" (plist-get checkpoint :turn)
            (contexture-session--time (plist-get checkpoint :created))
            (if (plist-get checkpoint :automatic) ", automatic" "")
            (if (= lost 0) "loses no turn"
              (concat "loses " (contexture--count lost "turn"))))))

(defun contexture-session--choose-checkpoint (prompt checkpoints turns &optional default)
  "Ask the user with PROMPT for one of CHECKPOINTS; return its id.
They are in the order in which they were taken; the session has TURNS
turns now.  DEFAULT is an id, by default the last one's."
  (let* ((alist (mapcar (lambda (it)
                          (cons (format "%s %s" (plist-get it :checkpoint)
                                        (plist-get it :message))
                                it))
                        (reverse checkpoints)))
         (default (or (car (cl-find default alist :test #'equal
                                    :key (lambda (it) (plist-get (cdr it) :checkpoint))))
                      (caar alist)))
         (name (completing-read
                (format-prompt prompt (contexture--visible default))
                (contexture--table
                 (mapcar #'car alist) 'contexture-checkpoint
                 (contexture-sets--annotate
                  alist (lambda (it) (contexture-session--checkpoint-text it turns))))
                nil t nil nil default)))
    (or (plist-get (cdr (assoc name alist)) :checkpoint)
        (user-error "No checkpoint was chosen"))))

(defun contexture-session--read-checkpoint (prompt)
  "Ask with PROMPT for a checkpoint of this buffer's session."
  (let* ((params (contexture-session--params))
         (stats (contexture--ask 'session-stats params))
         (checkpoints (contexture--ask 'list-checkpoints params)))
    (unless checkpoints
      (contexture--user-error "Session %s has no checkpoint; %s takes one"
                  (plist-get stats :session)
                  (contexture-session--key 'contexture-session-checkpoint)))
    (contexture-session--choose-checkpoint prompt checkpoints
                                           (plist-get stats :turns))))

;;;###autoload
(defun contexture-session-rollback (checkpoint)
  "Go back to CHECKPOINT, an id such as \"chk-3\".
Later messages leave the conversation and stay in the log;
`contexture-session-undo-rollback' undoes this."
  (interactive (list (contexture-session--read-checkpoint "Go back to")))
  (contexture-session--call
   'rollback (contexture-session--params :checkpoint checkpoint)
   (lambda (result)
     (contexture--message "Session %s is back at %s: %s, %s lost; %s undoes this"
              (plist-get result :session) (plist-get result :commit-restored)
              (contexture--count (plist-get result :turns-lost) "turn")
              (contexture--count (plist-get result :messages-lost) "message")
              (contexture-session--key 'contexture-session-undo-rollback)))))

;;;###autoload
(defun contexture-session-undo-rollback ()
  "Undo the last rollback of the session.
Messages added since that rollback leave the conversation and stay in the
log."
  (interactive)
  (contexture-session--call
   'undo-rollback (contexture-session--params)
   #'contexture-session--report-unrolled))

(defun contexture-session--report-unrolled (result)
  "Report that a rollback is undone, from RESULT."
  (contexture--message "The rollback of session %s is undone: %s restored%s; %s redoes it"
           (plist-get result :session)
           (contexture--count (plist-get result :turns-restored) "turn")
           (let ((lost (or (plist-get result :turns-lost) 0)))
             (if (> lost 0)
                 (format ", %s made since then lost" (contexture--count lost "turn"))
               ""))
           (contexture-session--key 'contexture-session-redo)))

;;;###autoload
(defun contexture-session-fork (name &optional checkpoint)
  "Start a session called NAME that continues from this one.
With a prefix argument, it continues from a CHECKPOINT.  If NAME is
empty, the server chooses one.  The new session becomes current."
  (interactive
   (let ((checkpoint (and current-prefix-arg
                          (contexture-session--read-checkpoint "Go on from"))))
     (list (read-string "Name of the new session (empty for any): ") checkpoint)))
  (contexture-session--call
   'fork-session
   (contexture-session--params
    :name (unless (string-blank-p (or name "")) (string-trim name))
    :checkpoint checkpoint)
   (lambda (entry)
     (contexture--message "Session %s continues from %s (%s); it is now the current one"
              (plist-get entry :session) (or checkpoint "there")
              (contexture-session--size entry)))))

;;;; Pruning and summarizing

;;;###autoload
(defun contexture-session-prune (&optional tokens)
  "Take the least important messages of the session out of view.
Stop when the rest has at most TOKENS, a prefix argument, by default 80
percent of the model's window.  `contexture-session-undo' brings them
back."
  (interactive (list (and current-prefix-arg
                          (prefix-numeric-value current-prefix-arg))))
  (contexture-session--call
   'prune-session (contexture-session--params :keep-tokens tokens :brief t)
   (lambda (result)
     (let* ((stats (plist-get result :stats))
            (removed (plist-get stats :items-removed)))
       (if (= removed 0)
           (contexture--message "Nothing to prune: session %s has only %s" (plist-get result :session)
                    (contexture-session--many (plist-get stats :final) "token"))
         (contexture--message "Pruned %s of session %s: %s → %s tokens; %s brings them back"
                  (contexture--count removed "message")
                  (plist-get result :session)
                  (contexture-session--number (plist-get stats :original))
                  (contexture-session--number (plist-get stats :final))
                  (contexture-session--key 'contexture-session-undo)))))))

;;;###autoload
(defun contexture-session-summarize (&optional keep)
  "Replace the older messages of the session with a summary.
The last KEEP messages, a prefix argument and 10 by default, stay.  The
summary is shown.  `contexture-session-undo' brings the messages back."
  (interactive (list (and current-prefix-arg
                          (prefix-numeric-value current-prefix-arg))))
  (contexture-session--call
   'summarize-session (contexture-session--params :keep-messages keep)
   (lambda (result)
     (contexture-session--show-summary (plist-get result :summary))
     (contexture--message "Summarized %s of session %s: %s → %s tokens; %s brings them back"
              (contexture--count
               (plist-get (plist-get result :stats) :summarized-items) "message")
              (plist-get result :session)
              (contexture-session--number (plist-get result :tokens-before))
              (contexture-session--number (plist-get result :tokens-after))
              (contexture-session--key 'contexture-session-undo)))))

(defun contexture-session--show-summary (summary)
  "Show SUMMARY, the text that replaces messages."
  (let ((buffer (get-buffer-create "*contexture: summary*")))
    (with-current-buffer buffer
      (special-mode)
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (if (stringp summary) summary (plist-get summary :content)))
        (contexture--show-hidden))
      (goto-char (point-min)))
    (display-buffer buffer)))

;;;; Going back to another view

(defun contexture-session--revision-before (revision revisions)
  "Return the number of the revision before REVISION in REVISIONS."
  (or (plist-get (cadr (member revision revisions)) :revision) 0))

;;;###autoload
(defun contexture-session-undo ()
  "Undo the last pruning, summary, rollback or restoration in the session.
Repeat it to undo earlier ones.  `contexture-session-redo' brings back
what was undone.  To choose which to undo, use
`contexture-session-restore-revision'."
  (interactive)
  (contexture-session--step 'undo-session :undone))

;;;###autoload
(defun contexture-session-redo ()
  "Redo the change of the session that was undone last.
Repeat it to redo more.  A new message, or another change of what is in
view, forgets what could be redone."
  (interactive)
  (contexture-session--step 'redo-session :redone))

(defun contexture-session--step (method what)
  "Call METHOD, `undo-session' or `redo-session', and report it.
WHAT is the member of its result that names the change."
  (contexture-session--call
   method (contexture-session--params)
   (lambda (result)
     (let ((change (contexture--name (plist-get result what)))
           (session (plist-get result :session)))
       (if (and (eq method 'undo-session) (equal change "rollback"))
           (contexture-session--report-unrolled result)
         (contexture--message
          "%s %s of session %s; %s" (if (eq method 'undo-session) "Undid" "Redid")
          (contexture-session--change-name change) session
          (if (eq method 'undo-session)
              (format "%s redoes it"
                      (contexture-session--key 'contexture-session-redo))
            (format "%s undoes it"
                    (contexture-session--key 'contexture-session-undo)))))))))

(defun contexture-session--change-name (method)
  "Return a name for the change that METHOD made."
  (pcase (contexture--name method)
    ((or "prune-context" "auto-manage-context") "the pruning")
    ("summarize-context" "the summary")
    ("rollback" "the rollback")
    ("restore-revision" "the return to an earlier view")
    (_ "the changes of the last turn")))

(defun contexture-session--restore (params revision)
  "Restore the view of REVISION in the session that PARAMS name."
  (contexture-session--call
   'restore-revision (append params (list :revision revision))
   (lambda (result)
     (contexture--message "Session %s shows the view of revision %d again; %s undoes it"
              (plist-get result :session) (plist-get result :restored)
              (contexture-session--key 'contexture-session-undo)))))

;;;###autoload
(defun contexture-session-restore-revision (revision)
  "Restore the view of REVISION, a number; 0 is the beginning.
This undoes prunings and summaries.  Newer messages stay in view."
  (interactive (list (contexture-session--read-revision)))
  (contexture-session--restore (contexture-session--params) revision))

(defun contexture-session--read-revision ()
  "Ask for a change of the session to undo; return the revision before it."
  (let* ((revisions (or (contexture--ask 'list-revisions (contexture-session--params))
                        (user-error "Nothing has changed the view of this session")))
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
    (contexture-session--revision-before
     (or (cdr (assoc name alist)) (user-error "Nothing was chosen"))
     revisions)))

;;;; Settings

(defconst contexture-session--more-settings
  '((:model :type string :doc "the model that windows are made for")
    (:strategy :values ("tiered" "query" "sliding" "importance")
               :doc "the strategy that chooses what is in a window" :default :tiered)
    (:window-tokens :type integer :doc "maximum tokens of a window")
    (:archive-pruned :type boolean :doc "pruned messages become memories" :default t)
    (:versioning :type boolean :doc "checkpoints are taken" :default t)
    (:manage :type boolean :doc "a template takes notes on the history")
    (:template :type string :doc "the template that takes notes")
    (:recent-runs :type integer :doc "number of turns that the note-taker is shown")
    (:passthrough-runs :type integer :doc "number of turns that are sent as they are")
    (:token-threshold :type integer :doc "tokens of history below which all is sent")
    (:tools :type names :doc "the tools that models may use")
    (:allowed-tools :type names :doc "the tools that need no approval"))
  "Descriptions of the settings that the server does not describe itself.")

(defun contexture-session--settings (result)
  "Return all settings of RESULT, of `configure-session', as plists."
  (append (plist-get result :settings)
          (cl-loop for (name . more) in contexture-session--more-settings
                   collect `(:name ,name :value ,(plist-get result name) ,@more))))

(defun contexture-session--setting-type (setting)
  "Return the type of SETTING.
It is `boolean', `name', `names', `string', `integer' or `number'."
  (cond ((plist-get setting :type))
        ((plist-get setting :values) 'name)
        ((memq (plist-get setting :default) '(t nil)) 'boolean)
        ((integerp (plist-get setting :default)) 'integer)
        (t 'number)))

(defun contexture-session--setting-text (setting)
  "Return the annotation of SETTING: value, default and range."
  (let ((show (lambda (value)
                (pcase (cons value (contexture-session--setting-type setting))
                  (`(t . boolean) "on")
                  (`(nil . boolean) "off")
                  (`(nil . names) "none")
                  (`(nil . ,_) "not set")
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
  "Ask for a value of SETTING, and return it in the server's form."
  (let* ((name (contexture--name (plist-get setting :name)))
         (value (plist-get setting :value))
         (prompt (format "%s (%s): " name (contexture-session--setting-text setting))))
    (pcase (contexture-session--setting-type setting)
      ('boolean (equal (completing-read prompt '("on" "off") nil t nil nil
                                        (if value "off" "on"))
                       "on"))
      ('name (intern (completing-read prompt (plist-get setting :values) nil t nil nil
                                      (contexture--name value))))
      ('string (read-string prompt nil nil value))
      ('names (contexture-session--read-tools prompt))
      (type
       (let ((number (read-number prompt (or value (plist-get setting :default)))))
         (contexture-session--check-range
          setting (if (eq type 'integer) (truncate number) number)))))))

(defvar contexture-repl--tools)

(defun contexture-session--read-tools (prompt)
  "Ask with PROMPT for names of tools, as a vector, which may be empty."
  (require 'contexture-repl-tool)
  (vconcat (delete "" (completing-read-multiple prompt contexture-repl--tools nil t))))

(defun contexture-session--check-range (setting number)
  "Return NUMBER if it is in the range of SETTING."
  (let ((least (plist-get setting :least))
        (most (plist-get setting :most)))
    (if (and least (not (<= least number most)))
        (contexture--user-error "%s must be from %s to %s"
                    (contexture--name (plist-get setting :name)) least most)
      number)))

;;;###autoload
(defun contexture-session-configure (name value)
  "Set the setting NAME, a keyword, of the session to VALUE.
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
       (contexture--message "%s of session %s: %s" (contexture--name name)
                (plist-get result :session)
                (contexture-session--setting-text setting))))))

(provide 'contexture-session-edit)
;;; contexture-session-edit.el ends here
