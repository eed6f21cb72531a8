;;; contexture-repl-command.el --- Commands behind a slash  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Commands to type at the prompt instead of a question: `/' and a name,
;; which completes with a description.  An Emacs command does the same as
;; each of them.

;;; Code:

(require 'contexture-repl-branch)
(require 'contexture-repl-settings)
(eval-when-compile (require 'subr-x))

(declare-function contexture-repl--root "contexture-repl" ())
(declare-function contexture-repl-redraw "contexture-repl" (&optional all))
(declare-function contexture-repl-switch-session "contexture-repl" (session))
(declare-function contexture-session-views "contexture-session-views" (&optional session))
(declare-function contexture-clear "contexture-sets" ())
(declare-function contexture-explain "contexture-explain" (&optional back session))
(declare-function contexture-list "contexture-list" (manager))
(declare-function contexture-remove "contexture-sets" (ids &optional name manager))

(defconst contexture-repl--commands
  '(("context" nil "list the items of the context" contexture-repl--do-context)
    ("add" "FILE or SYMBOL" "add a file or a definition" contexture-repl--do-add)
    ("drop" "ITEM" "remove an item of the context" contexture-repl--do-drop)
    ("clear" nil "remove all items; /undo brings them back" contexture-repl--do-clear)
    ("undo" nil "undo the last change of the context" contexture-repl--do-undo)
    ("redo" nil "redo the change that was undone last" contexture-repl--do-redo)
    ("stats" nil "show how full the model's window is" contexture-repl--do-stats)
    ("explain" nil "show why each part was sent or not" contexture-repl--do-explain)
    ("checkpoint" "WHY" "take a checkpoint to come back to" contexture-repl--do-checkpoint)
    ("rollback" "CHECKPOINT" "go back to a checkpoint" contexture-repl--do-rollback)
    ("template" "NAME or off" "choose the template that takes notes"
     contexture-repl--do-template)
    ("views" nil "list the notes, turn by turn" contexture-repl--do-views)
    ("tools" "on, off, allow NAME" "choose what models may do"
     contexture-repl--do-tools)
    ("model" "NAME" "choose the model" contexture-repl--do-model)
    ("phase" "NAME or off" "set the phase of the work" contexture-repl--do-phase)
    ("session" "NAME" "switch to a session, or start one" contexture-repl--do-session)
    ("dry-run" "QUESTION" "show what would be sent" contexture-repl--do-dry-run)
    ("retry" nil "ask the last question again" contexture-repl--do-retry)
    ("help" nil "list these commands" contexture-repl--do-help))
  "The commands, as (NAME ARGUMENT WHAT FUNCTION).
FUNCTION is called with the text after the name, perhaps empty.")

(defconst contexture-repl-dry-run-buffer "*contexture: dry run*"
  "Name of the buffer that shows what would be sent.")

(defconst contexture-repl--phases '("planning" "interface" "implementation" "testing")
  "Phases of work that the server knows.")

;;;; Running

(defun contexture-repl--command-p (text)
  "Return non-nil if TEXT is a command, not a path or a comment."
  (string-match-p "\\`/[a-z-]*\\(?:[ \t]\\|[ \t\n]*\\'\\)" text))

(defun contexture-repl--run-command (text)
  "Run the command TEXT; if it fails, put it back at the prompt.
It may also fail later; see `contexture-repl--running'."
  (string-match "\\`/\\([a-z-]*\\)[ \t\n]*" text)
  (let* ((name (match-string 1 text))
         (argument (string-trim (substring text (match-end 0))))
         (entry (or (assoc name contexture-repl--commands)
                    (contexture--user-error "There is no command /%s; /help lists them" name))))
    (contexture-repl--set-text "")
    (condition-case problem
        (let ((contexture-repl--running (cons (current-buffer) (string-trim text))))
          (funcall (nth 3 entry) argument))
      ((error quit)
       (contexture-repl--set-text text)
       (signal (car problem) (cdr problem))))
    (contexture-repl--remember (string-trim text))))

(defun contexture-repl--given (argument function)
  "Return ARGUMENT or, if it is empty, the value of FUNCTION, which asks."
  (if (string-empty-p argument) (funcall function) argument))

(defun contexture-repl--do-context (_)
  "Show the list of the items."
  (contexture-list contexture-manager))

(defun contexture-repl--do-add (name)
  "Add the file or symbol NAME, or a file that the user chooses."
  (let* ((name (replace-regexp-in-string "\\`@" "" name))
         (file (expand-file-name name (contexture-repl--root))))
    (cond ((string-empty-p name) (call-interactively #'contexture-add-file))
          ((file-directory-p file) (contexture-add-directory file))
          ((file-exists-p file) (contexture-add-file file))
          (t (contexture-add-symbol name)))))

(declare-function contexture-add-directory "contexture-tree"
                  (directory &optional mode hidden))
(declare-function contexture-add-symbol "contexture-symbol" (name))

(defun contexture-repl--do-drop (name)
  "Remove the item called NAME, or one that the user chooses."
  (if (string-empty-p name)
      (call-interactively #'contexture-remove)
    (let ((found (cl-remove-if-not
                  (lambda (item)
                    (member name (list (plist-get item :id)
                                       (contexture-repl--item-name item))))
                  contexture-repl--items)))
      (pcase (length found)
        (0 (contexture--user-error "The context has nothing called %s" name))
        (1 (contexture-repl--request
            'remove-items (list :manager (or (plist-get (car found) :manager)
                                             contexture-manager)
                                :id (plist-get (car found) :id))
            (lambda (_) (contexture--message "Removed %s" name))))
        (_ (contexture--user-error "%d items are called %s; use one of the ids %s"
                       (length found) name
                       (mapconcat (lambda (it) (plist-get it :id)) found ", ")))))))

(defun contexture-repl--do-clear (_)
  "Remove all items."
  (call-interactively #'contexture-clear))

(defun contexture-repl--do-undo (_)
  "Undo the last change of the context."
  (call-interactively #'contexture-undo))

(defun contexture-repl--do-redo (_)
  "Redo the change of the context that was undone last."
  (call-interactively #'contexture-redo))

(defun contexture-repl--do-retry (_)
  "Ask the last question again."
  (let ((contexture-repl--running nil)) ; only the question goes back to the prompt
    (contexture-repl-retry)))

(defun contexture-repl--do-stats (_)
  "Show how full the model's window is."
  (contexture-repl--request
   'session-stats (contexture--plist :session (contexture-repl--session-id)
                                     :model (plist-get contexture-repl--settings :model))
   (lambda (stats)
     (setq contexture-repl--stats stats)
     (contexture-repl--draw-header)
     (contexture-repl--note (contexture-repl--stats-text stats)))))

(defun contexture-repl--stats-text (stats)
  "Return a phrase for STATS."
  (format "%s in view with %s of %d (%.1f %%), %s in the log, %s; %d pruned, \
%d summarized, %d pinned"
          (contexture--count (or (plist-get stats :items) 0) "message")
          (contexture--count (or (plist-get stats :tokens) 0) "token")
          (or (plist-get stats :limit) 0)
          (or (plist-get stats :utilization-percent) 0.0)
          (or (plist-get stats :log) 0)
          (contexture--count (or (plist-get stats :turns) 0) "turn")
          (or (plist-get stats :pruned) 0) (or (plist-get stats :summarized) 0)
          (or (plist-get stats :pinned) 0)))

(defun contexture-repl--do-explain (_)
  "Show why each part of the last window was in or out."
  (contexture-explain nil (contexture-repl--session-id)))

(defun contexture-repl--do-checkpoint (why)
  "Take a checkpoint with the message WHY."
  (contexture-repl--request
   'checkpoint (append (contexture--plist
                        :session (contexture-repl--session-id)
                        :message (and (not (string-empty-p why)) why))
                       (list :request-key (contexture--make-request-key)))
   (lambda (result)
     (contexture-repl--note
      (if result
          (format "Checkpoint %s; /rollback %s comes back to here."
                  (plist-get result :checkpoint) (plist-get result :checkpoint))
        "This session keeps no checkpoints; M-x contexture-session-configure turns \
versioning on.")))))

(defun contexture-repl--do-rollback (name)
  "Go back to the checkpoint NAME, an id or a message, or to a chosen one.
If several have that message, take the last."
  (contexture-repl--check-idle)
  (let ((name (contexture-repl--given name #'contexture-repl--read-checkpoint)))
    (if (string-match-p "\\`chk-[0-9]+\\'" name)
        (contexture-repl--roll-back-to name)
      (contexture-repl--request
       'list-checkpoints (list :session (contexture-repl--session-id))
       (lambda (checkpoints)
         (let ((found (cl-find name checkpoints :from-end t :test #'equal
                               :key (lambda (it) (plist-get it :message)))))
           (if found (contexture-repl--roll-back-to (plist-get found :checkpoint))
             (contexture-repl--show-problem
              (list :message (format "No checkpoint is called %s; /rollback alone \
lists those there are" name))))))))))

(defun contexture-repl--roll-back-to (id)
  "Go back to the checkpoint ID."
  (contexture-repl--request
   'rollback (list :session (contexture-repl--session-id) :checkpoint id
                   :request-key (contexture--make-request-key))
   (lambda (result)
     (contexture--message "Back at %s: %s left the conversation" id
              (contexture--count (or (plist-get result :messages-lost) 0) "message"))
     (let ((contexture-repl--running nil)) (contexture-repl-redraw)))))

(defun contexture-repl--checkpoints ()
  "Return the checkpoints of the session, the newest first."
  (reverse (contexture--ask 'list-checkpoints
                            (list :session (contexture-repl--session-id)))))

(defun contexture-repl--read-checkpoint ()
  "Ask for a checkpoint of the session; return its id or its message."
  (completing-read "Go back to: "
                   (contexture-repl--checkpoint-table
                    (or (contexture-repl--checkpoints)
                        (user-error "This session has no checkpoint")))
                   nil t))

(defun contexture-repl--checkpoint-note (name checkpoints)
  "Return the message of the one of CHECKPOINTS with the id NAME."
  (let ((found (cl-find name checkpoints :test #'equal
                        :key (lambda (it) (plist-get it :checkpoint)))))
    (if found (concat "  " (contexture--visible (plist-get found :message))) "")))

(defun contexture-repl--checkpoint-table (checkpoints)
  "Return a completion table of the ids of CHECKPOINTS, and their messages."
  (contexture--table
   (append (mapcar (lambda (it) (plist-get it :checkpoint)) checkpoints)
           (delete-dups (delq nil (mapcar (lambda (it) (plist-get it :message))
                                          checkpoints))))
   'contexture-checkpoint
   (lambda (name) (contexture-repl--checkpoint-note name checkpoints))))

(defun contexture-repl--do-template (name)
  "Have the template NAME take notes, or none if it is \"off\"."
  (if (string-empty-p name) (call-interactively #'contexture-repl-switch-template)
    (contexture-repl-switch-template name)))

(defun contexture-repl--do-views (_)
  "List the notes on the session's history, turn by turn."
  (contexture-session-views (contexture-repl--session-id)))

(defun contexture-repl--do-tools (text)
  "Offer tools or not, list them, or allow one, as TEXT says."
  (let ((words (split-string text)))
    (if (member words '(nil ("list")))
        (contexture-repl--note (contexture-repl--tools-text))
      (contexture-repl-tools (intern (car words)) (cadr words)))))

(defun contexture-repl--do-model (name)
  "Choose the model NAME."
  (if (string-empty-p name) (call-interactively #'contexture-repl-switch-model)
    (contexture-repl-switch-model name)))

(defun contexture-repl--do-phase (name)
  "Set the phase of the work to NAME, or to none if it is \"off\"."
  (let ((name (contexture-repl--given
               name (lambda ()
                      (completing-read "Phase: " (cons "off" contexture-repl--phases)
                                       nil t)))))
    (unless (member name (cons "off" contexture-repl--phases))
      (contexture--user-error "There is no phase %s; the phases are %s, and off" name
                  (mapconcat #'identity contexture-repl--phases ", ")))
    (contexture-repl--choose :phase (and (not (equal name "off"))
                                         (intern (concat ":" name))))
    (message (if (equal name "off") "No phase is set" "The phase is now %s") name)))

(defun contexture-repl--do-session (name)
  "Switch to the session NAME."
  (if (string-empty-p name) (call-interactively #'contexture-repl-switch-session)
    (contexture-repl-switch-session name)))

(defun contexture-repl--do-help (_)
  "List the commands."
  (contexture-repl--note
   (concat
    (mapconcat (lambda (entry)
                 (format "/%-26s %s"
                         (concat (car entry) (if (nth 1 entry) (concat " " (nth 1 entry)) ""))
                         (nth 2 entry)))
               contexture-repl--commands "\n")
    (substitute-command-keys
     "\n\\[contexture-repl-newline] begins a line, \\[contexture-repl-cancel] stops an \
answer, \\[contexture-repl-retry] asks again,\n\\[contexture-repl-edit] changes a \
question, \\[contexture-repl-branch] branches into a new session,\n\
\\[contexture-repl-copy-block] copies code, \\[contexture-repl-apply] applies it; \
\\[describe-mode] shows all keys."))))

;;;; What would be sent

(defun contexture-repl--do-dry-run (text)
  "Show the request that asking TEXT would send."
  (contexture-repl-dry-run (contexture-repl--given
                            text (lambda () (read-string "Question: ")))))

(defun contexture-repl-dry-run (text)
  "Show the request that asking TEXT would send to the model.
Interactively, TEXT is the text at the prompt.  Nothing is sent."
  (interactive
   (list (if (string-blank-p (contexture-repl--text))
             (user-error "Write something first")
           (string-trim (contexture-repl--text)))))
  (contexture-repl--request
   'chat (contexture-repl--chat-params text :dry-run t)
   #'contexture-repl--show-dry-run
   (lambda (problem)
     (let ((contexture-repl--running nil)) (contexture-repl--show-problem problem))
     (contexture-repl--note (contexture-repl--advice
                             (plist-get (plist-get problem :data) :kind)
                             (plist-get problem :code))
                            'contexture-repl-error)
     (contexture-repl--give-back text))))

(defun contexture-repl--show-dry-run (result)
  "Show RESULT, of a dry run, in its own buffer."
  (let ((payload (plist-get result :payload)))
    (with-current-buffer (get-buffer-create contexture-repl-dry-run-buffer)
      (let ((inhibit-read-only t))
        (special-mode)
        (erase-buffer)
        (insert (format "This would be sent: %s\n\n"
                        (contexture-count--phrase result)))
        (dolist (part (plist-get result :parts))
          (insert (contexture-repl--part-line part)))
        (insert "\n" (contexture-repl--pretty payload))
        (contexture--show-hidden)
        (goto-char (point-min)))
      (display-buffer (current-buffer)))))

(defun contexture-repl--part-line (part)
  "Return a line for PART of a request: tokens, section, role and id."
  (let ((section (contexture--name (plist-get part :section)))
        (role (contexture--name (plist-get part :role)))
        (id (plist-get part :id)))
    (concat (string-trim-right
             (contexture--format "%8d  %-15s  %-9s  %s" (or (plist-get part :tokens) 0)
                     section (or role "") (or id "")))
            "\n")))

;;;; Completion

(defun contexture-repl--complete ()
  "Complete the command at the prompt, or its argument.
This is a function for `completion-at-point-functions'."
  (when (and (>= (point) contexture-repl--input)
             (eq (char-after contexture-repl--input) ?/))
    (let ((before (buffer-substring-no-properties contexture-repl--input (point))))
      (cond ((string-match "\\`/[a-z-]*\\'" before)
             (list (1+ contexture-repl--input)
                   (save-excursion (skip-chars-forward "a-z-") (point))
                   (mapcar #'car contexture-repl--commands)
                   :exclusive 'no
                   :annotation-function #'contexture-repl--annotate
                   :company-docsig #'contexture-repl--annotate
                   :exit-function #'contexture-repl--command-chosen))
            ((string-match "\\`/\\([a-z-]+\\)[ \t]+\\([^\n]*\\)\\'" before)
             (contexture-repl--complete-argument
              (match-string 1 before)
              (+ contexture-repl--input (match-beginning 2))))))))

(defun contexture-repl--annotate (name)
  "Return the annotation of the command NAME."
  (let ((entry (assoc name contexture-repl--commands)))
    (concat (if (nth 1 entry) (concat " " (nth 1 entry)) "") "  " (nth 2 entry))))

(defun contexture-repl--command-chosen (name status)
  "Insert a space after the command NAME if STATUS says that it is complete."
  (when (and (memq status '(finished sole))
             (nth 1 (assoc name contexture-repl--commands))
             (not (eq (char-after) ?\s)))
    (insert " ")))

(defun contexture-repl--complete-argument (command start)
  "Complete the argument of COMMAND; the argument begins at START."
  (let ((table (pcase command
                 ("template" (cons "off" contexture-repl--templates))
                 ("model" (contexture-repl--await-models) (contexture-repl--model-table))
                 ("tools" (contexture-repl--tools-table start))
                 ("rollback" (contexture-repl--checkpoint-table
                              (contexture-repl--checkpoints)))
                 ("drop" (mapcar #'contexture-repl--item-name contexture-repl--items))
                 ("add" (contexture-repl--file-table))
                 ("phase" (cons "off" contexture-repl--phases)))))
    (when table
      (list (if (equal command "tools") ; its last word; names may have blanks
                (save-excursion (skip-chars-backward "^ \t\n" start) (point))
              start)
            (point) table :exclusive 'no))))

(defun contexture-repl--tools-table (start)
  "Return the completion data of /tools, whose argument begins at START."
  (pcase (split-string (buffer-substring-no-properties start (point)) "[ \t]+")
    (`(,_) '("on" "off" "list" "allow" "ask"))
    (`(,(and what (or "allow" "ask")) ,_)
     (contexture-repl--tool-choices (intern what)))))

(defun contexture-repl--file-table ()
  "Return a completion table of files, relative to the folder of the session."
  (let ((root (contexture-repl--root)))
    (lambda (string predicate action)
      (let ((default-directory root))
        (completion-file-name-table string predicate action)))))

(provide 'contexture-repl-command)
;;; contexture-repl-command.el ends here
