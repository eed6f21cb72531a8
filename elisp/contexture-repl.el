;;; contexture-repl.el --- Talk with a model  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-repl' opens a conversation in a buffer: its messages, the
;; items of the context with their tokens, and a prompt.  Your question
;; goes to the model together with the context, and the answer appears while
;; it comes in.  The server keeps the conversation, so it is still there after
;; Emacs or the server restarts; so are your unsent drafts.
;;
;; contexture-repl-view.el draws, and contexture-repl-turn.el asks.  Here
;; are the settings, the commands behind a slash, the uses of code in an
;; answer, the mode itself, and questions about code from its own buffer.

;;; Code:

(require 'easymenu)
(require 'contexture-repl-turn)
(require 'contexture-code)
(require 'contexture-sources)
(eval-when-compile (require 'subr-x))

(autoload 'contexture-session--report-rolled-back "contexture-session")
(autoload 'contexture-session--send-no-memories "contexture-session")
(declare-function contexture-trust--ask "contexture-doctor" (project templates then))
(declare-function compilation-buffer-p "compile" (buffer))
(defvar contexture-mention-mode)
(defvar contexture-mention--for-question)

;;; Choose models, notes and tools

;; The settings of a conversation: the model, the template that takes notes on
;; its history, and the tools that models may use.  The server stores the
;; last two.  The buffer shows a choice at once, sends it to the server, and
;; then shows the settings that the server reports.  So nothing here waits,
;; even while an answer comes in.

(defvar contexture-repl-model-history nil
  "Minibuffer history of models and providers.")

(defvar contexture-question-history nil
  "Minibuffer history of questions to models.")

(defvar-local contexture-repl--templates nil
  "Names of the usable templates that take notes, as last reported.")

(defvar-local contexture-repl--untrusted nil
  "Alist from the names of untrusted templates to their files, as last reported.
They are the project's own templates if the project is not trusted.")

(defvar-local contexture-repl--models nil
  "Alist from the name of a provider to the list of its models, as far as known.
The value is `asked' until the provider has answered.")

(defconst contexture-repl--patience 0.5
  "Maximum number of seconds that completion waits for providers' models.")

(defconst contexture-repl--questions
  '("document" "explain" "fix-error" "review" "write-tests")
  "Names of templates that make questions about code and take no notes.")

;;;; Notes

(defun contexture-repl-switch-template (template)
  "Have TEMPLATE take notes on the history from now on; \"off\" means none.
The model then gets these notes and the last turns instead of the whole
history; the log keeps everything.  An answer that is coming in is not
affected."
  (interactive
   (let ((names (cons "off" (contexture-repl--template-names))))
     (list (completing-read
            (format-prompt "Template"
                           (contexture--visible (contexture-repl--other-template)))
            names nil nil nil nil (contexture-repl--other-template)))))
  (if (member template '("off" "" nil))
      (progn (contexture-repl--choose :manage nil)
             (contexture-repl--configure :manage nil)
             (message "From now on, the whole history is sent"))
    (contexture-repl--wanting
     template (lambda () (contexture-repl--have-managed template)))))

(defun contexture-repl--have-managed (template)
  "Have TEMPLATE take notes on the history from now on.
If the server refuses it, restore the settings, unless they changed meanwhile."
  (let ((before (copy-sequence contexture-repl--settings)))
    (contexture-repl--choose :template template)
    (contexture-repl--choose :manage t)
    (contexture-repl--configure-then
     (list :manage t :template template)
     (lambda ()
       (contexture--message "From now on, the template %s takes notes on the history" template))
     (lambda () ;; Do nothing if another template was chosen since.
       (when (equal (plist-get contexture-repl--settings :template) template)
         (contexture-repl--choose :template (plist-get before :template))
         (contexture-repl--choose :manage (plist-get before :manage)))))))

(defun contexture-repl--template-names ()
  "Return the names of templates that take notes, including untrusted ones."
  (delete-dups (append contexture-repl--templates
                       (cl-remove-if (lambda (name)
                                       (member name contexture-repl--questions))
                                     (mapcar #'car contexture-repl--untrusted)))))

(defun contexture-repl--wanting (template then)
  "Call THEN in this buffer, but first settle whether to trust TEMPLATE.
If TEMPLATE is the project's own, and the project is not trusted, ask the
user, once in this Emacs, whether to trust it.  Call THEN in any case."
  (if (not (assoc template contexture-repl--untrusted)) (funcall then)
    (require 'contexture-doctor)
    (let ((buffer (current-buffer)))
      (contexture-trust--ask
       (directory-file-name
        (or (contexture--outside-folder (plist-get contexture-repl--session :project))
            (contexture--user-error "The project %s is no folder of this machine"
                                    (plist-get contexture-repl--session :project))))
       (delq nil (mapcar #'cdr contexture-repl--untrusted))
       (lambda (trusted)
         (when (buffer-live-p buffer)
           (with-current-buffer buffer
             (when trusted (contexture-repl--ask-templates))
             (funcall then))))))))

(defun contexture-repl--other-template ()
  "Return \"off\" if notes are on, else the template that would take them."
  (if (plist-get contexture-repl--settings :manage) "off"
    (or (plist-get contexture-repl--settings :template)
        (car (member "freeform-chat" contexture-repl--templates))
        (car contexture-repl--templates)
        "freeform-chat")))

(defun contexture-repl-toggle-managing ()
  "Turn notes on the history off, or on with the template chosen last."
  (interactive)
  (contexture-repl-switch-template (contexture-repl--other-template)))

(defun contexture-repl-choose-template (event)
  "Choose the template that takes notes from a menu, at the click EVENT."
  (interactive "e")
  (with-current-buffer (window-buffer (posn-window (event-start event)))
    (popup-menu (easy-menu-create-menu "Template" (contexture-repl--template-menu))
                event)))

(defun contexture-repl--ask-templates ()
  "Fetch the templates that can take notes, trusted and untrusted ones."
  (contexture-repl--request
   'list-templates
   (contexture--plist :project (plist-get contexture-repl--session :project))
   (lambda (templates)
     (setq contexture-repl--templates
           (cl-loop for template in templates
                    for name = (plist-get template :name)
                    unless (or (plist-get template :error)
                               (contexture-repl--untrusted-p template)
                               (member name contexture-repl--questions))
                    collect (contexture--visible-candidate name))
           contexture-repl--untrusted
           (cl-loop for template in templates
                    when (contexture-repl--untrusted-p template)
                    collect (cons (plist-get template :name)
                                  (plist-get template :path)))))
   #'ignore))

(defun contexture-repl--untrusted-p (template)
  "Return non-nil if TEMPLATE, an entry of the server, is not trusted."
  (and (plist-member template :trusted) (not (plist-get template :trusted))))

(defun contexture-repl--trust-changed (project)
  "Fetch the templates again in the conversations of PROJECT, a root."
  (dolist (buffer (contexture-repl--buffers))
    (with-current-buffer buffer
      (let ((own (plist-get contexture-repl--session :project)))
        (when (and (contexture--outside-folder own)
                   (file-equal-p (contexture--outside-folder own) project))
          (contexture-repl--ask-templates))))))

;;;; A template for one question

(defun contexture-repl--complete-directive ()
  "Complete a line \"@context-helper NAME\", which names a question's template.
This is a function for `completion-at-point-functions'."
  (when (>= (point) contexture-repl--input)
    (let ((before (buffer-substring-no-properties contexture-repl--input (point))))
      (cond ((string-match "\\`@context-helper[ \t]+\\([^ \t\n]*\\)\\'" before)
             (list (+ contexture-repl--input (match-beginning 1)) (point)
                   contexture-repl--templates :exclusive 'no))
            ((and (>= (length before) (length "@context-"))
                  (string-prefix-p before contexture-repl--directive))
             (list (marker-position contexture-repl--input) (point)
                   (list contexture-repl--directive) :exclusive 'no))))))

;;;; Models

(defun contexture-repl-switch-model (model &optional provider)
  "Use MODEL of PROVIDER in this conversation from now on.
MODEL may also be the name of a provider, which means its model.  An empty
name means the server's default.  Interactively, complete over providers
and their models; with a prefix argument, ask for the provider, too."
  (interactive
   (list (contexture-repl--read-model)
         (and current-prefix-arg
              (read-string "Provider: " nil 'contexture-repl-model-history))))
  (let ((model (and model (not (string-blank-p model)) model))
        (provider (and provider (not (string-blank-p provider)) provider)))
    (cond (provider)
          ((contexture-repl--provider model) (setq provider model model nil))
          (t (setq provider (contexture-repl--provider-with model))))
    (contexture-repl--choose :model model)
    (contexture-repl--choose :provider provider)
    (setq contexture-repl--answered-by nil)
    (contexture-repl--draw-header)
    (contexture-repl--fetch-stats)
    (contexture--message "From now on, %s answers"
                         (or (contexture-repl--model) "the server's default model"))))

(defun contexture-repl--provider-with (model)
  "Return the name of a provider that is known to have MODEL, or nil.
Prefer the provider chosen in this conversation."
  (let ((having (cl-loop for (provider . models) in contexture-repl--models
                         when (and (listp models) (member model models))
                         collect provider)))
    (or (car (member (plist-get contexture-repl--settings :provider) having))
        (car having))))

(defun contexture-repl--read-model ()
  "Ask for the name of a model or a provider; return it."
  (contexture-repl--ask-models)
  (completing-read (format-prompt "Model" (contexture--visible (contexture-repl--model)))
                   (contexture-repl--model-table)
                   nil nil nil 'contexture-repl-model-history (contexture-repl--model)))

(defun contexture-repl--model-table ()
  "Return a completion table of providers and their known models.
It is computed for each completion, since models come in while the user types."
  (let ((buffer (current-buffer)))
    (contexture--table
     (lambda ()
       (and (buffer-live-p buffer)
            (with-current-buffer buffer (contexture-repl--model-names))))
     'contexture-model #'contexture-repl--annotate-model)))

(defun contexture-repl--model-names ()
  "Return the names of all providers, and of their models known by now."
  (delete-dups
   (append (mapcar (lambda (it) (plist-get it :name)) (contexture-repl--known-providers))
           (cl-loop for (_ . models) in contexture-repl--models
                    when (listp models) append models))))

(defun contexture-repl--annotate-model (name)
  "Return the annotation of NAME, a provider or a model, or \"\"."
  (let ((buffer (if (minibufferp) (window-buffer (minibuffer-selected-window))
                  (current-buffer))))
    (with-current-buffer buffer
      (if-let* ((provider (contexture-repl--provider name)))
          (contexture--format "  %s" (plist-get provider :model))
        (let ((provider (contexture-repl--provider-with name)))
          (if provider (contexture--format "  of %s" provider) ""))))))

(defun contexture-repl--ask-models ()
  "Ask each provider for its models, unless it has answered or was just asked.
Emacs does not wait for the answers."
  (dolist (provider (contexture-repl--known-providers))
    (let ((name (plist-get provider :name)))
      (unless (assoc name contexture-repl--models)
        (push (cons name 'asked) contexture-repl--models)
        (contexture-repl--request
         'list-models (list :provider name)
         (lambda (result)
           (setf (alist-get name contexture-repl--models nil nil #'equal)
                 (plist-get result :models)))
         (lambda (_)                    ; next time it is asked again
           (setq contexture-repl--models
                 (cl-delete name contexture-repl--models
                            :key #'car :test #'equal))))))))

(defun contexture-repl--ask-providers ()
  "Fetch the providers; if there are none, say how to set one up."
  (contexture-repl--request
   'list-providers nil
   (lambda (providers)
     (setq contexture-repl--providers (or providers 'none)
           contexture-repl--models nil)
     (contexture-repl--draw-header)
     (if providers (contexture-repl--forget-no-model)
       (contexture-repl--note-no-model)))
   #'ignore))

(defun contexture-repl--note-no-model ()
  "Draw a remark on how to set up a model, if there is no provider."
  (when (eq contexture-repl--providers 'none)
    (contexture-repl--forget-no-model)
    (contexture-repl--note contexture-repl--no-model nil
                           'contexture-intro t 'contexture-no-model t)))

(defun contexture-repl--forget-no-model ()
  "Remove the remark that no model is set up, if it is there."
  (let ((at (text-property-any (point-min) contexture-repl--tail 'contexture-no-model t)))
    (when at
      (contexture-repl--changing
        (delete-region at (next-single-property-change at 'contexture-no-model nil
                                                       contexture-repl--tail))))))

;;;; The menu

(defun contexture-repl--template-menu (&rest _)
  "Return the entries of the menu of templates, as easymenu takes them."
  (append
   (mapcar (lambda (name)
             (vector name (lambda () (interactive) (contexture-repl-switch-template name))
                     :style 'radio
                     :selected `(and (plist-get contexture-repl--settings :manage)
                                     (equal ,name (plist-get contexture-repl--settings
                                                             :template)))))
           (contexture-repl--template-names))
   (list "--"
         ["Send the whole history" (contexture-repl-switch-template "off")
          :style radio :selected (not (plist-get contexture-repl--settings :manage))])))

(defun contexture-repl--define-menu (map)
  "Define the menu of a conversation's buffer in the keymap MAP."
  (easy-menu-define nil map "Menu of a conversation with a model."
    '("Chat"
      ["Send" contexture-repl-send]
      ["Stop the answer" contexture-repl-cancel :active (contexture-repl--busy-p)]
      ["Ask again" contexture-repl-retry]
      ["Change the question" contexture-repl-edit]
      ["Branch into a new conversation" contexture-repl-branch]
      "--"
      ["Take notes on the history" contexture-repl-toggle-managing
       :style toggle :selected (plist-get contexture-repl--settings :manage)]
      ("Template" :filter contexture-repl--template-menu)
      ["Notes" (contexture-session-views (contexture-repl--session-id))]
      "--"
      ["Offer tools to the model"
       (contexture-repl-tools (if (plist-get contexture-repl--tool-settings :tools) 'off 'on))
       :style toggle :selected (plist-get contexture-repl--tool-settings :tools)]
      ["Decide on the model's request" contexture-repl-approve
       :active contexture-repl--approvals]
      "--"
      ["Model..." contexture-repl-switch-model]
      ["Conversation..." contexture-repl-switch-session]
      ["Show what would be sent" contexture-repl-dry-run]
      ["Items of the context" contexture-list])))

;;; Commands behind a slash

;; Commands to type at the prompt instead of a question: `/' and a name,
;; which completes with a description.  An Emacs command does the same as
;; each of them.

(defconst contexture-repl--commands
  '(("context" nil "list the items of the context" contexture-list)
    ("add" "FILE or SYMBOL" "add a file or a definition" contexture-repl--do-add)
    ("drop" "ITEM" "remove an item of the context" contexture-repl--do-drop)
    ("memories" "WORDS" "put what is remembered of them at the prompt"
     contexture-repl--do-memories)
    ("clear" nil "remove all items; /undo brings them back" contexture-clear)
    ("undo" nil "undo the last change to the context" contexture-undo)
    ("redo" nil "redo the change that was undone last" contexture-redo)
    ("stats" nil "show how full the model's window is" contexture-repl--do-stats)
    ("explain" nil "show why each part was sent or not" contexture-explain)
    ("checkpoint" "WHY" "take a checkpoint to come back to" contexture-repl--do-checkpoint)
    ("rollback" "CHECKPOINT" "go back to a checkpoint" contexture-repl--do-rollback)
    ("template" "NAME or off" "choose the template that takes notes"
     contexture-repl-switch-template)
    ("views" nil "list the notes, turn by turn" contexture-session-views)
    ("tools" "on, off, allow NAME" "choose which tools models may use"
     contexture-repl--do-tools)
    ("model" "NAME" "choose the model" contexture-repl-switch-model)
    ("phase" "NAME or off" "set the phase of the work" contexture-repl--do-phase)
    ("session" "NAME" "switch to a conversation, or start one" contexture-repl-switch-session)
    ("dry-run" "QUESTION" "show what would be sent" contexture-repl--do-dry-run)
    ("retry" nil "ask the last question again" contexture-repl--do-retry)
    ("help" nil "list these commands" contexture-repl--do-help))
  "The commands, as (NAME ARGUMENT WHAT FUNCTION).
FUNCTION is called with the text after the name, perhaps empty.  If it is
a command of Emacs, and there is no such text, it is called interactively.")

(defconst contexture-repl-dry-run-buffer "*contexture: dry run*"
  "Name of the buffer that shows what would be sent.")

(defconst contexture-repl--phases '("planning" "interface" "implementation" "testing")
  "Phases of work that the server knows.")

;;;; Running

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
          (pcase-let ((`(,takes ,_ ,function) (cdr entry)))
            (if (and (commandp function) (or (null takes) (string-empty-p argument)))
                (call-interactively function)
              (funcall function argument))))
      ((error quit)
       (contexture-repl--set-text text)
       (signal (car problem) (cdr problem))))
    (contexture-repl--remember (string-trim text))))

(defun contexture-repl--given (argument function)
  "Return ARGUMENT or, if it is empty, what FUNCTION, which asks, returns."
  (if (string-empty-p argument) (funcall function) argument))

(defun contexture-repl--do-add (name)
  "Add the file, directory or symbol NAME, or a file to ask for if it is empty."
  (let* ((name (replace-regexp-in-string "\\`@" "" name))
         (file (contexture--outside-file name (contexture-repl--root))))
    (cond ((string-empty-p name) (call-interactively #'contexture-add-file))
          ((contexture--remote-p name) (contexture-add-file name))
          ((null file) (contexture--user-error "%s is packed, or no file" name))
          ((file-directory-p file) (contexture-add-directory file))
          ((file-exists-p file) (contexture-add-file file))
          (t (contexture-add-symbol name)))))

(defun contexture-repl--do-drop (name)
  "Remove the item called NAME, or one to ask for if NAME is empty."
  (if (string-empty-p name)
      (call-interactively #'contexture-remove)
    (let ((found (cl-remove-if-not
                  (lambda (item)
                    (member name (list (plist-get item :id)
                                       (contexture-repl--item-name item))))
                  contexture-repl--items)))
      (pcase (length found)
        (0 (contexture--user-error "The context has no item called %s" name))
        (1 (contexture-repl--request
            'remove-items (list :manager (or (plist-get (car found) :manager)
                                             contexture-manager)
                                :id (plist-get (car found) :id))
            (lambda (_) (contexture--message "Removed %s" name))))
        (_ (contexture--user-error "%d items are called %s; /drop one of the ids %s"
                       (length found) name
                       (mapconcat (lambda (it) (plist-get it :id)) found ", ")))))))

(defun contexture-repl--do-memories (words)
  "Put the memories that match WORDS at the prompt, where they can be edited."
  (when (string-empty-p words)
    (user-error "Say what the memories are to be about, as in /memories port"))
  (contexture-repl--request
   'ground-query (list :query words :session (contexture-repl--session-id))
   (lambda (found)
     (if (null (plist-get found :memories))
         (contexture--message "No memory matches %s" words)
       (contexture-repl--set-text (concat (contexture-repl--text)
                                          (plist-get found :summary) "\n\n"))))))

(defun contexture-repl--do-retry (_)
  "Ask the last question again."
  (let ((contexture-repl--running nil)) ; only the question goes back to the prompt
    (contexture-repl-retry)))

(defun contexture-repl--do-stats (_)
  "Show how full the model's window is."
  (contexture-repl--request-stats
   (lambda (stats)
     (setq contexture-repl--stats stats)
     (contexture-repl--draw-header)
     (contexture-repl--note
      (format
       "%s in view with %s of %d (%.1f %%), %s in the log, %s; %d pruned, \
%d summarized, %d pinned"
       (contexture--count (or (plist-get stats :items) 0) "message")
       (contexture--count (or (plist-get stats :tokens) 0) "token")
       (or (plist-get stats :limit) 0)
       (or (plist-get stats :utilization-percent) 0.0)
       (or (plist-get stats :log) 0)
       (contexture--count (or (plist-get stats :turns) 0) "turn")
       (or (plist-get stats :pruned) 0) (or (plist-get stats :summarized) 0)
       (or (plist-get stats :pinned) 0))))))

(defun contexture-repl--do-checkpoint (why)
  "Take a checkpoint with the message WHY, or without one if WHY is empty."
  (contexture-repl--request
   'checkpoint (append (contexture--plist
                        :session (contexture-repl--session-id)
                        :message (and (not (string-empty-p why)) why))
                       (list :request-key (contexture--make-request-key)))
   (lambda (result)
     (contexture-repl--note
      (if result
          (format "Took checkpoint %s; /rollback %s comes back to here."
                  (plist-get result :checkpoint) (plist-get result :checkpoint))
        "This conversation keeps no checkpoints; M-x contexture-session-configure turns \
versioning on.")))))

(defun contexture-repl--do-rollback (name)
  "Go back to the checkpoint NAME, an id or a message.
If NAME is empty, ask for the checkpoint; if several have that message,
take the last one."
  (contexture-repl--check-idle)
  (let ((name (contexture-repl--given name #'contexture-repl--read-checkpoint)))
    (if (string-match-p "\\`chk-[0-9]+\\'" name)
        (contexture-repl--roll-back-to name)
      (contexture-repl--request
       'list-checkpoints (list :session (contexture-repl--session-id))
       (lambda (checkpoints)
         (let ((found (cl-find name checkpoints :from-end t :test #'equal
                               :key (lambda (it) (plist-get it :message)))))
           (if found (contexture-repl--roll-back-to (plist-get found :id))
             (contexture-repl--show-problem
              (list :message (format "No checkpoint is called %s; /rollback without \
a name lists the checkpoints" name))))))))))

(defun contexture-repl--roll-back-to (id)
  "Go back to the checkpoint ID, and redraw the conversation."
  (contexture-repl--roll-back
   id
   (lambda (result)
     (contexture-session--report-rolled-back result)
     (let ((contexture-repl--running nil)) (contexture-repl-redraw)))
   #'contexture-repl--show-problem))

(defun contexture-repl--checkpoints ()
  "Return the checkpoints of this conversation, the newest first."
  (reverse (contexture--ask 'list-checkpoints
                            (list :session (contexture-repl--session-id)))))

(defun contexture-repl--read-checkpoint ()
  "Ask for a checkpoint of this conversation; return its id or its message."
  (completing-read "Go back to: "
                   (contexture-repl--checkpoint-table
                    (or (contexture-repl--checkpoints)
                        (user-error "This conversation has no checkpoint; /checkpoint takes one")))
                   nil t))

(defun contexture-repl--checkpoint-note (name checkpoints)
  "Return the annotation of NAME, an id or a message of one of CHECKPOINTS.
That is the message for an id, else \"\"."
  (let ((found (cl-find name checkpoints :test #'equal
                        :key (lambda (it) (plist-get it :id)))))
    (if found (concat "  " (contexture--visible (plist-get found :message))) "")))

(defun contexture-repl--checkpoint-table (checkpoints)
  "Return a completion table of the ids and the messages of CHECKPOINTS."
  (contexture--table
   (append (mapcar (lambda (it) (plist-get it :id)) checkpoints)
           (delete-dups (delq nil (mapcar (lambda (it) (plist-get it :message))
                                          checkpoints))))
   'contexture-checkpoint
   (lambda (name) (contexture-repl--checkpoint-note name checkpoints))))

(defun contexture-repl--do-tools (text)
  "Offer the server's tools or not, list them, or allow one, as TEXT says."
  (let ((words (split-string text)))
    (if (member words '(nil ("list")))
        (contexture-repl--note (contexture-repl--tools-text))
      (contexture-repl-tools (intern (car words)) (cadr words)))))

(defun contexture-repl--do-phase (name)
  "Set the phase of the work to NAME, or to none if NAME is \"off\"."
  (let ((name (contexture-repl--given
               name (lambda ()
                      (completing-read "Phase: " (cons "off" contexture-repl--phases)
                                       nil t)))))
    (unless (member name (cons "off" contexture-repl--phases))
      (contexture--user-error "There is no phase %s; type %s or off" name
                  (mapconcat #'identity contexture-repl--phases ", ")))
    (contexture-repl--choose :phase (and (not (equal name "off"))
                                         (intern (concat ":" name))))
    (message (if (equal name "off") "The work has no phase now" "The phase of the work is now %s")
             name)))

(defun contexture-repl--do-help (_)
  "List the slash commands."
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
question, \\[contexture-repl-branch] branches into a new conversation,\n\
\\[contexture-repl-copy-block] copies code, \\[contexture-repl-apply] applies it; \
\\[describe-mode] shows all keys."))))

;;;; What would be sent

(defun contexture-repl--do-dry-run (text)
  "Show the request that asking TEXT would send; ask for an empty TEXT."
  (contexture-repl-dry-run (contexture-repl--given
                            text (lambda () (contexture-mention--ask "Question: "
                                                              'contexture-question-history)))))

(defun contexture-repl-dry-run (text)
  "Show the request that asking TEXT would send to the model.
Interactively, TEXT is the text at the prompt or, if that is empty,
\"(your question)\".  What TEXT names with `@' is part of it.  Nothing is sent."
  (interactive
   (list (if (string-blank-p (contexture-repl--text)) "(your question)"
           (string-trim (buffer-substring contexture-repl--input (point-max))))))
  (let ((mentioned (contexture-repl--take-mentions text))
        (text (substring-no-properties text)))
    (contexture-repl--request
     'chat (contexture-repl--chat-params text (and mentioned (contexture-repl--managers))
                                         :dry-run t)
     #'contexture-repl--show-dry-run
     (lambda (problem)
       (contexture-repl--note-problem problem)
       (contexture-repl--give-back text)))))

(defun contexture-repl--show-dry-run (result)
  "Show RESULT, that of a dry run of `chat', in its own buffer."
  (let ((payload (plist-get result :payload)))
    (with-current-buffer (get-buffer-create contexture-repl-dry-run-buffer)
      (let ((inhibit-read-only t))
        (special-mode)
        (erase-buffer)
        (insert (format "This would be sent: %s\n\n"
                        (contexture-count--phrase result)))
        (dolist (part (plist-get result :parts))
          (let ((section (contexture--name (plist-get part :section)))
                (role (contexture--name (plist-get part :role))))
            (insert (string-trim-right
                     (contexture--format "%8d  %-15s  %-9s  %s"
                                         (or (plist-get part :tokens) 0)
                                         section (or role "")
                                         (or (plist-get part :id) "")))
                    "\n")))
        (insert "\n" (contexture-repl--pretty payload))
        (contexture--show-hidden)
        (goto-char (point-min)))
      (pop-to-buffer (current-buffer)))))

;;;; Completion

(defun contexture-repl--complete ()
  "Complete the slash command at the prompt, or its argument.
This is a function for `completion-at-point-functions'."
  (when (and (>= (point) contexture-repl--input)
             (eq (char-after contexture-repl--input) ?/))
    (let ((before (buffer-substring-no-properties contexture-repl--input (point))))
      (cond ((string-match "\\`/[a-z-]*\\'" before)
             (list (1+ contexture-repl--input)
                   (save-excursion (skip-chars-forward "a-z-") (point))
                   (mapcar #'car contexture-repl--commands)
                   :annotation-function #'contexture-repl--annotate
                   :company-docsig #'contexture-repl--annotate
                   :exit-function #'contexture-repl--command-chosen))
            ((string-match "\\`/\\([a-z-]+\\)[ \t]+\\([^\n]*\\)\\'" before)
             (contexture-repl--complete-argument
              (match-string 1 before)
              (+ contexture-repl--input (match-beginning 2))))))))

(defun contexture-repl--annotate (name)
  "Return the annotation of the slash command NAME: argument and description."
  (let ((entry (assoc name contexture-repl--commands)))
    (concat (if (nth 1 entry) (concat " " (nth 1 entry)) "") "  " (nth 2 entry))))

(defun contexture-repl--command-chosen (name status)
  "Insert a space after the slash command NAME if it takes an argument.
Do that only if STATUS says that completion is finished."
  (when (and (memq status '(finished sole))
             (nth 1 (assoc name contexture-repl--commands))
             (not (eq (char-after) ?\s)))
    (insert " ")))

(defun contexture-repl--complete-argument (command start)
  "Complete the argument of the slash COMMAND; the argument begins at START."
  (let ((table (pcase command
                 ("template" (cons "off" contexture-repl--templates))
                 ("model" (contexture-repl--ask-models)
                  (let ((end (+ (float-time) contexture-repl--patience)))
                    (while (and (rassq 'asked contexture-repl--models)
                                (< (float-time) end) (not (input-pending-p)))
                      (accept-process-output nil 0.02)))
                  (contexture-repl--model-table))
                 ("tools"
                  (pcase (split-string
                          (buffer-substring-no-properties start (point))
                          "[ \t]+")
                    (`(,_) '("on" "off" "list" "allow" "ask"))
                    (`(,(and what (or "allow" "ask")) ,_)
                     (contexture-repl--tool-choices (intern what)))))
                 ("rollback" (contexture-repl--checkpoint-table
                              (contexture-repl--checkpoints)))
                 ("drop" (mapcar #'contexture-repl--item-name contexture-repl--items))
                 ("add" (let ((root (contexture-repl--root)))
                          (lambda (string predicate action)
                            (let ((default-directory root))
                              ;; A part of a name connects to no other machine.
                              (contexture--inertly
                                (completion-file-name-table string predicate action))))))
                 ("phase" (cons "off" contexture-repl--phases)))))
    (when table
      (list (if (equal command "tools") ; its last word; names may have blanks
                (save-excursion (skip-chars-backward "^ \t\n" start) (point))
              start)
            (point) table))))

;;; Use the code of an answer

;; Copies and inserts the code between the fences of an answer, and proposes
;; it in place of what it belongs to: the code that was asked about, or the
;; definition with the same name.

;;;; Blocks

(defun contexture-repl--block-here ()
  "Return a position in the block of code at point, or else in the last one."
  (if (get-text-property (point) 'contexture-block) (point)
    (or (contexture-repl--last-block)
        (user-error "No answer in this buffer has a block of code"))))

(defun contexture-repl--last-block ()
  "Return a position in the last block of code that a model wrote, or nil."
  (contexture-repl--draw-all)
  (let ((position (marker-position contexture-repl--tail)) found)
    (while (and (not found) (> position (point-min)))
      (let* ((before (1- position))
             (message (contexture-repl--message-at before)))
        (if (and (get-text-property before 'contexture-block)
                 message
                 (eq (contexture-repl--message-role message) :assistant))
            (setq found before)
          (setq position (previous-single-property-change
                          position 'contexture-block nil (point-min))))))
    found))

(defun contexture-repl-copy-block ()
  "Copy the block of code at point, by default the last one, to the kill ring."
  (interactive)
  (let ((text (contexture-repl-markdown--block-text (contexture-repl--block-here))))
    (kill-new text)
    (contexture--message "Copied %s" (contexture--count
                          (length (split-string text "\n" t)) "line"))))

(defun contexture-repl-insert-block (buffer)
  "Insert the block of code at point, by default the last one, in BUFFER.
Interactively, BUFFER is that of another window; with a prefix argument,
or if there is no other window, choose one."
  (interactive (list (contexture-repl--other-buffer current-prefix-arg)))
  (let ((text (contexture-repl-markdown--block-text (contexture-repl--block-here))))
    (with-current-buffer buffer
      (barf-if-buffer-read-only)
      (let ((window (get-buffer-window buffer t)))
        (when window (goto-char (window-point window)))
        (push-mark)
        (insert text)
        (when window (set-window-point window (point)))))
    (contexture--message "Inserted the code in %s" (buffer-name (get-buffer buffer)))))

(defun contexture-repl--other-buffer (ask)
  "Return a buffer in which to insert code; ask for it if ASK is non-nil.
Otherwise take that of a window, and ask only if no window has a suitable one."
  (let ((window (and (not ask)
                     (cl-find-if (lambda (window)
                                   (with-current-buffer (window-buffer window)
                                     (not (or buffer-read-only
                                              (derived-mode-p 'contexture-repl-mode)))))
                                 (window-list)))))
    (if window (window-buffer window)
      (get-buffer (read-buffer "Insert in buffer: " (other-buffer) t)))))

(defun contexture-repl-next-block (&optional count)
  "Go to the next block of code, or to that COUNT blocks forward."
  (interactive "p")
  (let ((step (if (< (or count 1) 0) -1 1)))
    (dotimes (_ (abs (or count 1)))
      (let* ((here (get-text-property (point) 'contexture-block))
             (starts (contexture-repl--block-starts))
             (place (if (> step 0)
                        (cl-find-if (lambda (it) (> it (point))) starts)
                      (cl-find-if (lambda (it)
                                    (and (< it (point))
                                         (not (eq here (get-text-property
                                                        it
                                                        'contexture-block)))))
                                  (reverse starts)))))
        (goto-char
         (or place (user-error "There is no further block of code")))))))

(defun contexture-repl-previous-block (&optional count)
  "Go to the previous block of code, or to that COUNT blocks back."
  (interactive "p")
  (contexture-repl-next-block (- (or count 1))))

(defun contexture-repl--block-starts ()
  "Return the start positions of the blocks of code in this buffer, in order."
  (contexture-repl--draw-all)
  (let ((position (point-min)) starts)
    (while (< position contexture-repl--tail)
      (when (get-text-property position 'contexture-block)
        (push position starts))
      (setq position (next-single-property-change
                      position 'contexture-block nil contexture-repl--tail)))
    (nreverse starts)))

;;;; Applying

(defun contexture-repl-apply ()
  "Propose the block of code at point, by default the last one, as a change.
It replaces the code that the question was about.  If the block defines
something else, or the question was about no code, it replaces the
definition of that name in the context's files or the project's buffers.
\\<contexture-review-map>There, \\[contexture-review-accept] accepts the change \
and \\[contexture-review-reject] rejects it.  No file is saved."
  (interactive)
  (let* ((block (contexture-repl--block-here))
         (message (contexture-repl--message-at block))
         (code (contexture-repl-markdown--block-text block))
         (origin (contexture-repl--target
                  code (and message (contexture-repl--message-origin message))))
         (bounds (contexture-repl--locate origin))
         (session (current-buffer)))
    (with-current-buffer (contexture-repl--origin-buffer origin)
      (contexture-review--check)
      (let* ((old (buffer-substring-no-properties (car bounds) (cdr bounds)))
             (new (contexture-repl--fit code old)))
        (when (equal new old)
          (contexture--user-error "%s already has that code" (buffer-name)))
        (contexture-review--show
         (contexture-review--begin
          (car bounds) (cdr bounds)
          :again (apply-partially #'contexture-repl-code--again session origin))
         new t))
      (contexture-review--go-to (car bounds)))))

(defun contexture-repl--locate (origin)
  "Return the bounds of ORIGIN's code as a pair; visit its file if necessary.
Signal an error if the code cannot be found."
  (let ((buffer (contexture-repl--origin-buffer origin))
        (file (contexture-repl--origin-file origin)))
    (cond ((buffer-live-p buffer)
           (cons (copy-marker (contexture-repl--origin-beg origin))
                 (copy-marker (contexture-repl--origin-end origin) t)))
          ((and file (setq buffer (contexture--visit-outside file)))
           (setf (contexture-repl--origin-buffer origin) buffer)
           (with-current-buffer (contexture-repl--origin-buffer origin)
             (contexture-repl--find-text (contexture-repl--origin-text origin))))
          (t (user-error "The buffer with the old code is gone; copy or insert the new code")))))

(defun contexture-repl--find-text (text)
  "Return the bounds of TEXT in this buffer as a pair.
Signal an error unless it occurs exactly once."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char (point-min))
      (let* ((case-fold-search nil)
             (end (or (search-forward text nil t)
                      (contexture--user-error "The old code is no longer in %s; copy or \
insert the new code" (buffer-name)))))
        (when (search-forward text nil t)
          (contexture--user-error "The old code is in %s more than once; copy or \
insert the new code" (buffer-name)))
        (cons (copy-marker (- end (length text))) (copy-marker end t))))))

(defun contexture-repl--fit (text old)
  "Return TEXT with a newline at its end, or without one, as OLD has it."
  (let ((bare (string-trim-right text "\n+")))
    (if (string-suffix-p "\n" old) (concat bare "\n") bare)))

;;;; The definition of a name

(defun contexture-repl--target (code origin)
  "Return the origin of the code that CODE is to replace.
That is ORIGIN, of the code that was asked about, unless it is nil or CODE
defines other names: then it is the definition of the first of them, if
there is one.  Ask the user if there are several."
  (let* ((names (contexture-repl--defined-names code))
         (found (and (or (null origin)
                         (not (cl-intersection
                               names (contexture-repl--defined-names
                                      (contexture-repl--origin-text origin))
                               :test #'equal)))
                     (contexture-repl--definitions (car names)))))
    (cond ((cdr found)
           (let ((prompt (format "Which definition of %s? " (car names))))
             (cdr (assoc (completing-read prompt found nil t) found))))
          (found (cdar found))
          (origin)
          ((null names)
           (user-error "Cannot tell which buffer to change; copy or insert the code"))
          (t (contexture--user-error "No file of the context and no buffer of the project \
defines %s; copy or insert the code" (car names))))))

(defun contexture-repl--definitions (name)
  "Return the definitions of NAME in code buffers, each as (PLACE . ORIGIN).
PLACE is text for the user.  Return nil if NAME is nil."
  (when name
    (cl-loop for buffer in (contexture-repl--code-buffers)
             append (with-current-buffer buffer
                      (save-restriction
                        (widen)
                        (mapcar #'contexture-repl--definition-at
                                (contexture-defun--named name)))))))

(defun contexture-repl--defined-names (code)
  "Return the names that CODE, a string, defines, in their order."
  (with-temp-buffer
    (insert code)
    (mapcar #'car (contexture-defun--heads))))

(defun contexture-repl--code-buffers ()
  "Return buffers of the context's files, and those of files in the project.
Visit the context's files.  Without a project, take the buffers of files
below the folder of this conversation."
  (delete-dups
   (append (cl-loop for item in contexture-repl--items
                    for name = (plist-get (plist-get item :metadata) :filename)
                    for file = (contexture--outside-file name)
                    for buffer = (or (contexture--visited-buffer name)
                                     (and file (file-exists-p file)
                                          (contexture--visit-quietly file)))
                    when buffer collect buffer)
           (contexture--project-buffers (contexture-repl--root)))))

(defun contexture-repl--definition-at (bounds)
  "Return (PLACE . ORIGIN) for the definition between BOUNDS in this buffer.
PLACE is the name of the buffer and a line number."
  (cons (format "%s:%d" (buffer-name) (line-number-at-pos (car bounds)))
        (contexture-repl--make-origin
         :buffer (current-buffer) :file buffer-file-name
         :beg (copy-marker (car bounds)) :end (copy-marker (cdr bounds) t)
         :text (buffer-substring-no-properties (car bounds) (cdr bounds)))))

;;; Talk with a model

(defcustom contexture-repl-own-context nil
  "Non-nil means that a new conversation has only items of its own.
Otherwise it also has the items of the project of the buffer where you
start it, and those for everywhere, so that the model sees what you add
to these, too."
  :type 'boolean
  :group 'contexture-repl)

(defcustom contexture-repl-continue nil
  "Non-nil means that the commands about code go on in the last conversation.
They are those that make the question themselves, such as
`contexture-explain-code' and `contexture-rewrite'.  Otherwise they begin a
new conversation, so that the model sees no earlier questions.  A prefix
argument lets you name the conversation to go on in."
  :type 'boolean
  :group 'contexture-repl)

(defcustom contexture-repl-hide-markup t
  "Non-nil means hide the asterisks, backquotes and other markup of answers.
This is for conversations opened from now on; `contexture-repl-toggle-markup'
shows or hides the markup in the current buffer."
  :type 'boolean
  :group 'contexture-repl)

(defcustom contexture-repl-shown-messages 100
  "Maximum number of messages to show when a conversation is opened.
`contexture-repl-redraw' with a prefix argument shows all."
  :type 'natnum
  :group 'contexture-repl)

(defvar-local contexture-repl--items-timer nil
  "Timer that will fetch the items of the context, or nil.")

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
  "Major mode for a conversation with a model.
Write at the prompt: \\<contexture-repl-mode-map>\\[contexture-repl-send] \
sends it, \\[contexture-repl-newline] begins a new line,
and `@' with \\[completion-at-point] names files, symbols and items, \
which go with it.
A text that begins with `/' and a name is a command; /help lists them.  If
the text begins with \"@context-helper NAME\", that template takes notes for
this turn.

\\[contexture-repl-cancel] stops an answer.  \\[contexture-repl-retry] asks the \
last question again, \\[contexture-repl-edit] changes the
one at point, and \\[contexture-repl-branch] branches into a new \
conversation.  \\[contexture-repl-copy-block]
copies the code at point, by default the last, \\[contexture-repl-insert-block] \
inserts it elsewhere,
and \\[contexture-repl-apply] applies it to the code that you asked about.

\\{contexture-repl-mode-map}"
  (set-syntax-table text-mode-syntax-table)
  (setq-local font-lock-function #'ignore
              font-lock-ensure-function #'contexture-repl--draw-all
              fontification-functions (list #'contexture-repl--draw-seen)
              word-wrap t
              truncate-lines nil
              scroll-conservatively 101
              bidi-paragraph-direction 'left-to-right
              bidi-inhibit-bpa t
              filter-buffer-substring-function #'contexture-repl--filter-substring
              completion-at-point-functions (list #'contexture-repl--complete t))
  (contexture--choose-evil-state 'insert)
  (contexture--show-tool-bar '("mail/send" contexture-repl-send "Send")
                             '("cancel" contexture-repl-cancel "Stop"
                               :enable (contexture-repl--busy-p))
                             '("refresh" contexture-repl-retry "Ask again")
                             '("jump-to" contexture-repl-apply "Apply")
                             '("open" contexture-repl-switch-session "Conversation")
                             '("index" contexture-list "Context"))
  (setq buffer-invisibility-spec '(t)
        mode-line-process '((:eval (contexture-repl--mode-line-state))
                            (:eval (contexture-repl--mode-line-count))))
  (when contexture-repl-hide-markup (add-to-invisibility-spec 'contexture-markup))
  (buffer-enable-undo)
  (contexture-repl--lay-out)
  (add-hook 'pre-command-hook #'contexture-repl--before-command nil t)
  (add-hook 'after-change-functions #'contexture-repl--text-changed nil t)
  (add-hook 'kill-buffer-hook #'contexture-repl--leave nil t)
  (add-hook 'window-size-change-functions #'contexture-repl--resized nil t)
  (contexture-mention-mode)
  (setq contexture-mention--for-question t)
  ;; Before mentions, which would not complete the name of a template.
  (add-hook 'completion-at-point-functions #'contexture-repl--complete-directive -90 t)
  (contexture-watch #'contexture-repl--changed
                    '(session-changed management-failed providers-changed))
  (add-hook 'contexture-connected-hook #'contexture-repl--connected)
  (add-hook 'contexture-providers-hook #'contexture-repl--providers-changed)
  (add-hook 'kill-emacs-hook #'contexture-repl--keep-all))

(contexture-repl--define-menu contexture-repl-mode-map)

;;;; Opening

;;;###autoload
(defun contexture-repl (&optional session)
  "Talk with a model in this project's conversation that was used last.
If the project has none yet, start one.  In a buffer without a project,
take the last conversation without a project.  With a prefix argument, ask
for the name SESSION of a conversation, which may be another project's; if
none has that name, start one for this project."
  (interactive
   (list (and current-prefix-arg (contexture-repl--read-session))))
  (let ((project (contexture-repl--project-here)))
    (pop-to-buffer (contexture-repl--buffer session))
    (when (< (point) contexture-repl--input) (goto-char (point-max)))
    (contexture-repl--tell-project (current-buffer) project)))

(defun contexture-repl--buffer (&optional session)
  "Return the buffer of the conversation called SESSION; start it if needed.
If SESSION is nil, return this buffer if it is a conversation's, else the
buffer of the last conversation of its project."
  (contexture-repl--note-used
   (cond (session (contexture-repl--open (contexture-repl--make-session session)))
         ((contexture--in-asking-buffer
            (and (derived-mode-p 'contexture-repl-mode) (current-buffer))))
         (t (contexture-repl--last-used)))))

(defun contexture-repl--last-used ()
  "Return the buffer of the last conversation here, opened again if needed.
If there is none, start one."
  (let ((last (contexture-repl--last-of (contexture-repl--project-here))))
    (if (and last (equal (plist-get (buffer-local-value 'contexture-repl--session last) :id)
                         (car (contexture-repl--used))))
        last
      (contexture-repl--open (contexture-repl--usual-session)))))

(defun contexture-repl--project-here ()
  "Return the root of this buffer's project, or nil.
In a conversation's buffer, that is the project of the conversation."
  (contexture--in-asking-buffer
    (if (derived-mode-p 'contexture-repl-mode)
        (plist-get contexture-repl--session :project)
      (contexture--project-root))))

(defun contexture-repl--project-of (buffer)
  "Return the project of BUFFER's conversation, a root, or nil."
  (plist-get (buffer-local-value 'contexture-repl--session buffer) :project))

(defun contexture-repl--last-of (project)
  "Return the buffer of PROJECT's conversation that was used last, or nil.
If PROJECT is nil, return that of the last conversation without a project."
  (cl-find-if (lambda (buffer)
                (and (buffer-live-p buffer)
                     (contexture--same-project-p
                      project (contexture-repl--project-of buffer))))
              contexture-repl--recent))

(defun contexture-repl--usual-session ()
  "Return the conversation of this buffer's project used last, or a new one.
Without a project, it is one that has none.  Of those that nobody used here,
skip conversations that were imported from agents.  The value is an entry of
the server."
  (let* ((project (contexture-repl--project-here))
         (all (cl-remove-if (lambda (session) (and (not project) (plist-get session :project)))
                            (contexture--ask 'list-sessions
                                             (and project (list :project project))))))
    (or (cl-some (lambda (id) (contexture--entry :id id all)) (contexture-repl--used))
        (cl-find-if-not (lambda (session) (plist-get session :source)) all)
        (contexture-repl--make-session nil))))

(defun contexture-repl--belongs-text (buffer project)
  "Return a phrase for the project of BUFFER's conversation, if not PROJECT.
PROJECT is a root or nil."
  (let ((own (contexture-repl--project-of buffer)))
    (if (contexture--same-project-p own project) ""
      (concat ", which belongs to "
              (if own (contexture--project-label own) "no project")))))

(defun contexture-repl--tell-project (buffer project)
  "Show a message if BUFFER's conversation does not belong to PROJECT.
PROJECT is a root or nil."
  (let ((text (contexture-repl--belongs-text buffer project)))
    (unless (string-empty-p text)
      (contexture--message
       "This is conversation %s%s"
       (plist-get (buffer-local-value 'contexture-repl--session buffer) :session) text))))

(defun contexture-repl--make-session (name)
  "Return the server's entry for the conversation called NAME.
Start the conversation if needed; if NAME is nil, start a new one."
  (let* ((context (contexture--conversation-context))
         (session (contexture--ask
                   'open-session
                   (contexture--plist :name name
                                      (if (listp context) :managers :manager) context
                                      :project (contexture-repl--project-here)
                                      :request-key (contexture--make-request-key)))))
    (when (plist-get session :created-now)
      (contexture-session--send-no-memories session))
    session))

(defun contexture-repl--read-session ()
  "Ask for the name of a conversation, which need not exist; return it or nil.
The default is the last conversation of this buffer's project."
  (let* ((sessions (contexture--ask 'list-sessions nil))
         (names (mapcar (lambda (it) (plist-get it :session)) sessions))
         (project (contexture-repl--project-here))
         (default (plist-get (cl-find-if (lambda (it)
                                           (contexture--same-project-p
                                            project (plist-get it :project)))
                                         sessions)
                             :session))
         (name (minibuffer-with-setup-hook #'contexture-sets--allow-spaces
                 (completing-read
                  (format-prompt "Conversation" (contexture--visible default))
                  (contexture--table names 'contexture-session
                                     (lambda (name)
                                       (contexture-repl--session-note name sessions)))
                  nil nil nil 'contexture-session-history default))))
    (and name (not (string-blank-p name)) (string-trim name))))

(defun contexture-repl--session-note (name sessions)
  "Return the annotation of NAME: project and size of its conversation.
SESSIONS are the server's entries; return \"\" if none has NAME."
  (if-let* ((session (cl-find name sessions :test #'equal
                              :key (lambda (it) (plist-get it :session)))))
      (let ((project (plist-get session :project)))
        (format "  %s%s, %s"
                (if project (concat (contexture--project-label project) ", ") "")
                (contexture--count (plist-get session :messages) "message")
                (contexture--count (plist-get session :tokens) "token")))
    ""))

(defun contexture-repl--open (session)
  "Return the buffer of the conversation SESSION; create it if needed.
SESSION is an entry of the server."
  (let* ((session (contexture-repl--with-items session))
         (id (plist-get session :id))
         (buffer (or (contexture-repl--buffer-of id)
                     (generate-new-buffer (contexture-repl--buffer-name
                                           (plist-get session :session))))))
    (with-current-buffer buffer
      (unless (derived-mode-p 'contexture-repl-mode)
        (when-let* ((folder (contexture--outside-folder (plist-get session :project))))
          (setq default-directory folder))
        (contexture-repl-mode)
        (setq contexture-repl--session session
              contexture-manager (contexture-repl--context session))
        (contexture-repl--bring-back)
        (contexture-repl--draw-header)
        (contexture-repl--ask-providers) ; first, so that headings have names
        (contexture-repl-redraw)
        (contexture-repl--fetch-settings)
        (contexture-repl--ask-templates)))
    (contexture-repl--note-used buffer)))

(defun contexture-repl--with-items (session)
  "Return SESSION, an entry; if it was imported, have it send its project's items.
Agents know nothing of contexts, so an imported conversation has none yet."
  (let ((project (plist-get session :project)))
    (if (or contexture-repl-own-context (null project) (plist-get session :managers)
            (null (plist-get session :source)))
        session
      (let ((names (contexture--pluck
                    :manager (plist-get (contexture--ask 'open-layers (list :root project))
                                        :layers))))
        (contexture--ask 'configure-session
                         (list :session (plist-get session :id) :managers names
                               :request-key (contexture--make-request-key)))
        (plist-put (copy-sequence session) :managers
                   (append names (list (plist-get session :manager))))))))

(defun contexture-repl--context (session)
  "Return the context of the conversation SESSION, an entry of the server.
That is one name, or the list of the names of its layers."
  (let ((own (plist-get session :manager))
        (layers (plist-get session :managers)))
    (when layers
      (puthash own (concat "conversation " (plist-get session :session))
               contexture--labels))
    (or layers own)))

(defun contexture-repl--buffers ()
  "Return the buffers in `contexture-repl-mode', which show conversations."
  (cl-remove-if-not (lambda (buffer)
                      (eq (buffer-local-value 'major-mode buffer) 'contexture-repl-mode))
                    (buffer-list)))

(defun contexture-repl--buffer-of (id)
  "Return the buffer of the conversation with ID, or nil."
  (cl-find-if (lambda (buffer)
                (equal id (plist-get (buffer-local-value 'contexture-repl--session buffer)
                                     :id)))
              (contexture-repl--buffers)))

(defun contexture-repl--root ()
  "Return the folder to which file names in this conversation are relative.
That is its project's root or, without a project, `default-directory'."
  (or (contexture--outside-folder (plist-get contexture-repl--session :project))
      (file-name-as-directory (expand-file-name default-directory))))

;;;; Messages from the log

(defun contexture-repl-redraw (&optional all)
  "Redraw the conversation from the server's data.
The text at the prompt stays.  With a prefix argument, ALL, show all
messages, not only the last `contexture-repl-shown-messages'.  While a
question is being answered, the messages stay as they are."
  (interactive "P")
  (unless (contexture-repl--answering-p)
    (contexture-repl--request
     'get-messages
     (append (list :session (contexture-repl--session-id))
             (unless all (list :limit contexture-repl-shown-messages)))
     (lambda (messages)
       (unless (contexture-repl--answering-p)
         (contexture-repl--draw-log messages)
         (setq contexture-repl--loaded t)
         (mapc #'funcall (nreverse (cl-shiftf contexture-repl--once-loaded nil)))))
     (lambda (problem)
       (contexture-repl--show-problem problem)
       (setq contexture-repl--once-loaded nil)
       (when (eq (car contexture-repl--preparing) 'log)
         (contexture-repl--give-back (cdr (cl-shiftf contexture-repl--preparing nil)))))))
  (contexture-repl--fetch-items)
  (contexture-repl--fetch-stats))

(defun contexture-repl--answering-p ()
  "Return non-nil if a turn is being answered or prepared beside this log."
  (and (contexture-repl--busy-p)
       (not (eq (car contexture-repl--preparing) 'log))))

(defvar contexture-repl--called nil
  "Alist from the ids of tool calls to names of tools, while a log is drawn.
The newest come first, since some models reuse ids.")

(defun contexture-repl--draw-log (messages)
  "Replace everything above the prompt with MESSAGES, from the server."
  (contexture-repl--changing
    (delete-region (point-min) contexture-repl--tail))
  (setq contexture-repl--messages nil)
  (contexture-repl--note-length (plist-get (car (last messages)) :id))
  (cond ((null messages)
         (contexture-repl--note (substitute-command-keys
                                 "Write a question and press \\[contexture-repl-send]. \
@ sends a file with it, /help lists commands, \\[describe-mode] keys.")
                                nil 'contexture-intro t))
        ((not (member (plist-get (car messages) :id) '(nil "msg-1")))
         (contexture-repl--note (substitute-command-keys
                                 "Earlier messages are not shown; \
\\[universal-argument] \\[contexture-repl-redraw] shows them."))))
  (let ((contexture-repl--called nil))
    (dolist (message messages)
      (contexture-repl--draw-logged message)
      (when-let* ((key (contexture-repl--usage-key (plist-get message :id)))
                  (usages (plist-get contexture-repl--settings :usage))
                  (usage (nth 2 (assoc key usages))))
        (contexture-repl--note usage))))
  (contexture-repl--note-no-model)
  (contexture-repl--draw-context))

(defun contexture-repl--draw-logged (message)
  "Draw MESSAGE, from the server, as the last one.
A model's text after the use of a tool belongs to the answer before it."
  (let* ((role (plist-get message :role))
         (content (or (plist-get message :content) ""))
         (last (car contexture-repl--messages))
         (going-on ; after the use of a tool
          (and (eq role :assistant) last
               (> contexture-repl--tail (point-min))
               (get-text-property (1- contexture-repl--tail) 'contexture-used)
               (eq (contexture-repl--message-role last) :assistant))))
    (cond ((and (eq role :tool) last)
           (contexture-repl--draw-logged-result
            (cdr (assoc (plist-get message :tool-call-id) contexture-repl--called))
            content))
          (going-on
           (setf (contexture-repl--message-id last) (plist-get message :id))
           ;; Its model is known by the last message of the answer.
           (when-let* ((model (contexture-repl--model-of (plist-get message :id))))
             (contexture-repl--retitle last model))
           (unless (string-empty-p content)
             (contexture-repl--add-text last content)))
          (t (setq last (contexture-repl--add-message
                         role content
                         (or (contexture-repl--model-of (plist-get message :id)) "Model")
                         :id (plist-get message :id)))))
    (dolist (call (plist-get message :tool-calls))
      (push (cons (plist-get call :id) (contexture-repl--tool-name call))
            contexture-repl--called)
      (contexture-repl--draw-tool-call call))))

(defun contexture-repl--model-of (id)
  "Return the name of the model that gave the answer with ID, or nil if unknown.
It need not be the model that is in use now."
  (nth 1 (assoc (contexture-repl--usage-key id)
                (plist-get contexture-repl--settings :usage))))

(defun contexture-repl--draw-logged-result (tool content)
  "Draw a line for CONTENT, the result of TOOL, with CONTENT as details.
The server's own tools return JSON on success, else plain text; JSON is
shown as \"done\".  TOOL is nil if the call itself is not drawn."
  (contexture-repl--draw-fold
   (contexture-repl--one-line
    (format "%s: %s" (or tool "a tool")
            (if (and (or (null tool) (member tool contexture-repl--tools))
                     (string-match-p "\\`[ \t\n]*[[{]" content))
                "done" content))
    (- (contexture-repl--width) 4))
   (and (> (length content) 40) content)
   'contexture-used t))

(defun contexture-repl-next-message (&optional count)
  "Go to the next message, or to that COUNT messages forward.
After the last one, go to the end of the buffer."
  (interactive "p")
  (let ((step (if (< (or count 1) 0) -1 1)))
    (dotimes (_ (abs (or count 1)))
      (let ((starts
             (mapcar (lambda (it)
                       (marker-position (contexture-repl--message-from it)))
                     contexture-repl--messages)))
        (goto-char (or (if (> step 0)
                           (cl-find-if (lambda (it) (> it (point)))
                                       (reverse starts))
                         (cl-find-if (lambda (it) (< it (point))) starts))
                       (if (> step 0) (point-max)
                         (user-error "There is no earlier message"))))))))

(defun contexture-repl-previous-message (&optional count)
  "Go back to the beginning of a message, or to that COUNT messages back."
  (interactive "p")
  (contexture-repl-next-message (- (or count 1))))

(defun contexture-repl--filter-substring (beg end &optional delete)
  "Return the original text from BEG to END, and delete it if DELETE.
This is a value of `filter-buffer-substring-function'."
  (prog1 (contexture-repl-markdown--text (min beg end) (max beg end))
    (when delete (delete-region beg end))))

(defun contexture-repl-toggle-markup ()
  "Show or hide the markup of answers."
  (interactive)
  (if (memq 'contexture-markup buffer-invisibility-spec)
      (remove-from-invisibility-spec 'contexture-markup)
    (add-to-invisibility-spec 'contexture-markup))
  (contexture-repl--changing
    (goto-char (point-min))
    (while (re-search-forward (concat "^" contexture-repl-markdown--rule)
                              contexture-repl--tail t)
      (forward-line)
      (while (and (looking-at-p contexture-repl-markdown--row) (zerop (forward-line))))
      (save-excursion (contexture-repl-markdown--align-table (point)))))
  (force-window-update (current-buffer)))

;;;; Notifications from the server

(defun contexture-repl--leave ()
  "Save this buffer's draft, and cancel its turn; the buffer is being killed."
  (contexture-count--unfollow (current-buffer))
  (contexture-repl--drop-mentions contexture-repl--mentioned)
  (contexture-repl--keep-draft)
  (dolist (timer (list contexture-repl--idle-timer contexture-repl--items-timer))
    (when timer (cancel-timer timer)))
  (when-let* ((turn contexture-repl--turn))
    (contexture-repl--end-turn turn)
    (when (contexture-repl--turn-id turn)
      (contexture--cancel (contexture-repl--turn-connection turn)
                          (contexture-repl--turn-id turn))))
  (unless (remq (current-buffer) (contexture-repl--buffers))
    (contexture-unwatch #'contexture-repl--changed)
    (remove-hook 'contexture-connected-hook #'contexture-repl--connected)
    (remove-hook 'contexture-providers-hook #'contexture-repl--providers-changed)
    (remove-hook 'kill-emacs-hook #'contexture-repl--keep-all)))

(defun contexture-repl--keep-all ()
  "Save the drafts of all conversations."
  (dolist (buffer (contexture-repl--buffers))
    (with-current-buffer buffer (contexture-repl--keep-draft))))

(defun contexture-repl--connected ()
  "Update all conversations from the server that was just connected."
  (setq contexture-repl--unknown nil)
  (dolist (buffer (contexture-repl--buffers))
    (with-current-buffer buffer
      (contexture-repl--fetch-items)
      (contexture-repl--fetch-settings)
      (contexture-repl--fetch-stats))))

(defun contexture-repl--providers-changed ()
  "Fetch the providers again in all conversations, and count again."
  (dolist (buffer (contexture-repl--buffers))
    (with-current-buffer buffer
      (contexture-repl--ask-providers)
      (contexture-repl--count))))

(defun contexture-repl--changed (method params)
  "Handle the notification METHOD with PARAMS in the conversations it concerns."
  (when (eq method 'providers-changed)
    (contexture-repl--providers-changed))
  (dolist (buffer (and (memq method '(context-changed session-changed management-failed))
                       (contexture-repl--buffers)))
    (with-current-buffer buffer
      (cond ((eq method 'context-changed)
             (when (contexture--of-context-p (plist-get params :manager)
                                             (contexture-repl--managers))
               (unless (plist-get params :own)
                 (contexture-repl--tell-of-others
                  (contexture--name (plist-get params :method))
                  (contexture--label (plist-get params :manager))))
               (unless contexture-repl--items-timer
                 (let ((buffer (current-buffer)))
                   (setq contexture-repl--items-timer
                         (run-at-time 0.05 nil
                                      (lambda ()
                                        (when (buffer-live-p buffer)
                                          (with-current-buffer buffer
                                            (setq contexture-repl--items-timer nil)
                                            (contexture-repl--fetch-items))))))))))
            ((not (if-let* ((id (plist-get params :session-id)))
                      (equal id (contexture-repl--session-id))
                    (equal (plist-get params :session)
                           (plist-get contexture-repl--session :session)))))
            ((eq method 'management-failed)
             (unless (contexture-repl--busy-p)
               (contexture-repl--note
                (contexture-repl--failed-managing-text params) 'contexture-repl-error)))
            (t (contexture-repl--session-changed params))))))

(defconst contexture-repl--told-of-others
  '(("chat" . "asked in %s; the answer is shown")
    ("add-message" . "added a message to %s")
    ("rollback" . "rolled %s back")
    ("undo-rollback" . "undid a rollback of %s")
    ("undo-session" . "undid the last change of %s")
    ("redo-session" . "redid a change of %s")
    ("remove-items" . "removed items of %s")
    ("undo" . "undid a change of the items of %s")
    ("redo" . "redid a change of the items of %s")
    ("clear-context" . "removed all items of %s"))
  "Alist from methods that others call to phrases about a conversation or context.")

(defun contexture-repl--tell-of-others (method what)
  "Say in one line that another client called METHOD, a name, on WHAT.
Say nothing if WHAT is shown nowhere."
  (when-let* (((get-buffer-window nil 'visible))
              (phrase (cdr (assoc method contexture-repl--told-of-others))))
    (contexture--message "Another client %s" (contexture--format phrase what))))

(defun contexture-repl--session-changed (params)
  "Show a change of this conversation that the notification PARAMS reports.
Changes made in this buffer are shown already."
  (let* ((method (contexture--name (plist-get params :method)))
         (before contexture-repl--log-length)
         (now (or (plist-get params :messages) before)))
    (pcase method
      ("rename-session" (contexture-repl--renamed (plist-get params :session)))
      ("configure-session" (contexture-repl--fetch-settings)))
    (setq contexture-repl--log-length now)
    (when (and (pcase method
                 ("rollback"
                  (or (= contexture-repl--own-rollbacks 0)
                      (ignore (cl-decf contexture-repl--own-rollbacks))))
                 ((or "undo-rollback" "undo-session" "redo-session") t)
                 ((or "add-message" "chat")
                  (and (= contexture-repl--asking 0) (> now before))))
               (not (contexture-repl--busy-p)))
      (unless (memq (intern method) contexture--own-session-calls)
        (contexture-repl--tell-of-others
         method (concat "conversation " (plist-get contexture-repl--session :session))))
      (contexture-repl-redraw))))

(defun contexture-repl--fetch-items ()
  "Fetch the items of this conversation's context, and show them."
  (contexture-repl--request
   'list-items (append (contexture--context-params (contexture-repl--managers)) '(:brief t))
   (lambda (items)
     (setq contexture-repl--items items)
     (contexture-repl--draw-context))
   #'ignore))

(defun contexture-repl--resized (window)
  "Redraw the line above the prompt in the buffer of WINDOW for its width.
In a new frame, Emacs calls this in another buffer."
  (with-current-buffer (window-buffer window)
    (contexture-repl--draw-context)))

;;;; Choosing

(defun contexture-repl-switch-session (session)
  "Show the conversation called SESSION in this window.
Start it if there is none of that name."
  (interactive (list (contexture-repl--read-session)))
  (let ((project (contexture-repl--project-here)))
    (switch-to-buffer (contexture-repl--open (contexture-repl--make-session session)))
    (contexture-repl--tell-project (current-buffer) project)))

;;; Ask about code from its buffer

;; Commands for buffers with code that ask a model to explain, document,
;; review, test, fix or rewrite the region or the definition around point.
;; Templates of the server make the questions; you can replace them with
;; your own of the same names.  The answer appears in the conversation; if it
;; has new code, `contexture-repl-apply' there proposes it as a change of the
;; code, as `contexture-rewrite' does while the answer comes in.

;;;; The code to ask about

(defvar-local contexture-repl-code--waiting nil
  "Questions to ask when no other is being answered, each as (TEXT . ORIGIN).")

(defun contexture-repl-code--bounds ()
  "Return the bounds of the region, or else of the definition around point.
They are a pair.  Signal an error if there is no text."
  (let ((bounds (cond ((use-region-p) (cons (region-beginning) (region-end)))
                      ((contexture--defun-bounds))
                      (t (user-error "Mark a region, or put point in a definition")))))
    (when (string-blank-p (buffer-substring-no-properties (car bounds) (cdr bounds)))
      (user-error "There is no text to ask about"))
    bounds))

(defun contexture-repl-code--take (bounds session)
  "Return (TEXT . ORIGIN) for the code between BOUNDS in this buffer.
TEXT is the code between fences, below a line that names its source.
SESSION is the buffer of the conversation in which to ask about it."
  (let* ((beg (car bounds)) (end (cdr bounds))
         (code (buffer-substring-no-properties beg end))
         (place (contexture-repl-code--place
                 (plist-get (contexture--capture beg end :region) :metadata) session))
         (fence (contexture-repl-code--fence code)))
    (cons (format "From %s:\n%s%s\n%s%s%s"
                  place fence (contexture-repl-code--language) code
                  (if (string-suffix-p "\n" code) "" "\n") fence)
          (contexture-repl--make-origin
           :buffer (contexture--base-buffer)
           :beg (copy-marker beg) :end (copy-marker end t)
           :file (buffer-file-name (contexture--base-buffer)) :text code :name place))))

(defun contexture-repl-code--place (metadata session)
  "Return a phrase for the place of a text with METADATA.
SESSION is a conversation's buffer: a path is relative to the text's project
only if that is also the conversation's."
  (contexture--description
   (if (contexture--same-project-p (plist-get metadata :project)
                                   (contexture-repl--project-of session))
       metadata
     (plist-put (copy-sequence metadata) :project nil))))

(defun contexture-repl-code--fence (code)
  "Return a fence of backquotes that is longer than any backquotes in CODE."
  (let ((longest 2) (start 0))
    (while (string-match "`+" code start)
      (setq longest (max longest (- (match-end 0) (match-beginning 0)))
            start (match-end 0)))
    (make-string (1+ longest) ?`)))

(defun contexture-repl-code--language ()
  "Return the name of this buffer's language for a code fence, or \"\"."
  (let ((name (replace-regexp-in-string "\\(-ts\\)?-mode\\'" ""
                                        (symbol-name major-mode))))
    (pcase name
      ((or "fundamental" "text") "")
      ((or "emacs-lisp" "lisp-interaction") "elisp")
      ("c++" "cpp")
      (_ name))))

(defun contexture-repl-code--ask (template bounds session &rest fields)
  "Ask the question that TEMPLATE makes of the code between BOUNDS.
SESSION is the name of the conversation to ask in, or nil for a new one.
FIELDS are further fields of TEMPLATE, keywords and values."
  (let* ((buffer (contexture-repl-code--idle (contexture-repl-code--clean session)))
         (taken (contexture-repl-code--take bounds buffer))
         (language (contexture-repl-code--language))
         (fields (apply #'contexture--plist
                        :code (car taken)
                        :language (and (not (string-empty-p language)) language)
                        fields)))
    (setf (contexture-repl--origin-name (cdr taken))
          (or (plist-get fields :question)
              (format "%s %s" (contexture--capitalized (string-replace "-" " " template))
                      (contexture-repl--origin-name (cdr taken)))))
    (with-current-buffer buffer
      (contexture-repl--wanting
       template
       (lambda ()
         (contexture-repl--request
          'resolve-template
          (append (contexture--plist
                   :name template
                   :project (plist-get contexture-repl--session :project))
                  (list :fields fields))
          (lambda (resolved)
            (contexture-repl-code--submit
             (string-trim (or (plist-get resolved :text) "")) (cdr taken)))))))
    (setq deactivate-mark t)
    (contexture-repl-code--show buffer)))

(defun contexture-repl-code--clean (&optional session)
  "Return the buffer of the conversation called SESSION or, if nil, of a new one.
A conversation without questions counts as new.  If `contexture-repl-continue'
is non-nil, it is the one that `contexture-repl' shows instead."
  (let ((last (contexture-repl--last-of (contexture-repl--project-here))))
    (cond ((or session contexture-repl-continue) (contexture-repl--buffer session))
          ((and last (contexture-repl--unused-p last)) last)
          (t (contexture-repl--open (contexture-repl--make-session nil))))))

(defun contexture-repl--unused-p (buffer)
  "Return non-nil if BUFFER's conversation has no messages and no draft."
  (with-current-buffer buffer
    (and (eql 0 (plist-get contexture-repl--session :messages))
         (= 0 contexture-repl--log-length)
         (null contexture-repl--messages)
         (null contexture-repl-code--waiting)
         (not (contexture-repl--busy-p))
         (string-blank-p (contexture-repl--text)))))

(defun contexture-repl-code--idle (buffer)
  "Return BUFFER, of a conversation.
Signal an error if a question is still being answered there."
  (with-current-buffer buffer (contexture-repl--check-idle))
  buffer)

(defun contexture-repl-code--read-session (prefix)
  "Ask for the name of the conversation to use if PREFIX is non-nil.
PREFIX is a prefix argument; without it, return nil."
  (and prefix (contexture-repl--read-session)))

(defun contexture-repl-code--tell (buffer project)
  "Say in which conversation, that of BUFFER, something was just asked.
Name the items and the earlier messages that go along, and its project if
that is not PROJECT, from where it was asked."
  (with-current-buffer buffer
    (let ((totals (contexture--totals-of contexture-manager))
          (whose (contexture-repl--sources-label))
          (before (if contexture-repl--loaded (max 0 (1- (length contexture-repl--messages)))
                    (or (plist-get contexture-repl--session :messages) 0))))
      (contexture--message
       "Asked in conversation %s%s, with %s%s"
       (plist-get contexture-repl--session :session)
       (contexture-repl--belongs-text buffer project)
       (if (< 0 (or (car totals) 0))
           (concat (contexture--size (car totals) (cdr totals))
                   (if (string-empty-p whose) "" (concat " of " whose)))
         "no items")
       (if (= before 0) ""
         (format " and %s before" (contexture--count before "message")))))))

(defun contexture-repl-code--show (buffer)
  "Show and select BUFFER, of a conversation; something was just asked there."
  (let ((project (contexture-repl--project-here)))
    (pop-to-buffer buffer)
    (goto-char (point-max))
    (contexture-repl-code--tell buffer project)))

(defun contexture-repl-code--submit (text origin)
  "Ask TEXT, with code from ORIGIN, in this conversation.
If another question is being answered, put TEXT at the prompt instead."
  (if (contexture-repl--busy-p)
      (contexture-repl--give-back text)
    (contexture-repl--ask text origin)))

;;;; Commands

;;;###autoload
(defun contexture-explain-code (&optional question session)
  "Have a model explain the region or the definition around point.
With a prefix argument, ask QUESTION about it instead; with two, also
choose the conversation SESSION to go on in.  Otherwise see
`contexture-repl-continue'."
  (interactive
   (list (and current-prefix-arg (contexture-mention--ask "Question about this code: "
                                                            'contexture-question-history))
         (contexture-repl-code--read-session (equal current-prefix-arg '(16)))))
  (contexture-repl-code--ask
   "explain" (contexture-repl-code--bounds) session
   :question (and question (not (string-blank-p question)) question)))

;;;###autoload
(defun contexture-document-defun (&optional session)
  "Have a model document the region or the definition around point.
`contexture-repl-apply' in the conversation then proposes the change.  With
a prefix argument, choose the conversation SESSION to go on in; otherwise
see `contexture-repl-continue'."
  (interactive (list (contexture-repl-code--read-session current-prefix-arg)))
  (contexture-repl-code--ask "document" (contexture-repl-code--bounds) session))

;;;###autoload
(defun contexture-review-code (&optional session)
  "Have a model review the region or the definition around point.
With a prefix argument, choose the conversation SESSION to go on in;
otherwise see `contexture-repl-continue'."
  (interactive (list (contexture-repl-code--read-session current-prefix-arg)))
  (contexture-repl-code--ask "review" (contexture-repl-code--bounds) session))

;;;###autoload
(defun contexture-write-tests (&optional session)
  "Have a model write tests for the region or the definition around point.
With a prefix argument, choose the conversation SESSION to go on in;
otherwise see `contexture-repl-continue'."
  (interactive (list (contexture-repl-code--read-session current-prefix-arg)))
  (contexture-repl-code--ask "write-tests" (contexture-repl-code--bounds) session))

;;;###autoload
(defun contexture-fix-error (error &optional session)
  "Have a model fix the region or the definition around point.
ERROR says what is wrong with the code.  Interactively, ERROR is Flymake's
diagnostics at point, or what you type.  In a compilation, the model fixes
the code that the error at point names.  With a prefix argument, choose the
conversation SESSION to go on in; otherwise see `contexture-repl-continue'."
  (interactive (list nil (contexture-repl-code--read-session current-prefix-arg)))
  (if (and (null error) (derived-mode-p 'compilation-mode))
      (contexture-repl-code--fix-compilation session)
    (contexture-repl-code--ask
     "fix-error" (contexture-repl-code--bounds) session
     :error (or error (contexture-repl-code--error-here)))))

(defun contexture-repl-code--error-here ()
  "Return Flymake's diagnostics at point as text, or else what the user types."
  (let ((diagnostics (and (bound-and-true-p flymake-mode)
                          (contexture-sources--diagnostics nil))))
    (if diagnostics
        (string-trim-right
         (mapconcat #'contexture-sources--diagnostic-text diagnostics ""))
      (let ((text (contexture-mention--ask "What is wrong? " 'contexture-question-history)))
        (if (string-blank-p text) (user-error "Say what is wrong with the code")
          text)))))

(defun contexture-repl-code--fix-compilation (session)
  "Have a model fix the code that the error at point of this compilation names.
SESSION is the name of the conversation to ask in, or nil for a new one."
  (let* ((position (or (contexture-sources--error-position)
                       (user-error "There is no compilation error at point")))
         (text (string-trim-right (contexture-sources--error-text position)))
         (place (contexture-sources--error-place position)))
    (unless (car place)
      (user-error "This error does not name an existing file"))
    (with-current-buffer (find-file-noselect (car place))
      (save-excursion
        (save-restriction
          (widen)
          (contexture--line-position (or (cdr place) 1))
          (contexture-repl-code--ask
           "fix-error"
           (or (contexture--defun-bounds)
               (cons (line-beginning-position -9) (line-beginning-position 11)))
           session
           :error text))))))

;;;###autoload
(defun contexture-send-region (question &optional session)
  "Ask QUESTION about the region or the definition around point.
If QUESTION is empty, put the text at the prompt of the conversation, where
you can write more.  With a prefix argument, choose the conversation
SESSION, by default the last one of this project."
  (interactive (list (contexture-mention--ask "Ask about this code: " 'contexture-question-history)
                     (contexture-repl-code--read-session current-prefix-arg)))
  (let ((bounds (contexture-repl-code--bounds)))
    (if (string-blank-p question)
        (contexture-repl-code--put-at-prompt bounds session)
      (contexture-repl-code--ask-plainly question bounds session))))

(defun contexture-repl-code--put-at-prompt (bounds session)
  "Put the code between BOUNDS at the prompt of a conversation, and show that.
SESSION is the conversation's name, or nil for the usual one."
  (let* ((buffer (contexture-repl--buffer session))
         (taken (contexture-repl-code--take bounds buffer))
         (project (contexture-repl--project-here)))
    (with-current-buffer buffer
      (contexture-repl--set-text
       (concat (contexture-repl--text) (car taken) "\n\n")))
    (pop-to-buffer buffer)
    (goto-char (point-max))
    (contexture-repl--tell-project buffer project)))

(defun contexture-repl-code--ask-plainly (question bounds session)
  "Ask QUESTION about the code between BOUNDS, without a template.
SESSION is the name of the conversation to ask in, or nil for the usual one."
  (let* ((buffer (contexture-repl-code--idle (contexture-repl--buffer session)))
         (taken (contexture-repl-code--take bounds buffer)))
    (setf (contexture-repl--origin-name (cdr taken)) question)
    (setq deactivate-mark t)
    (with-current-buffer buffer
      (contexture-repl--ask (concat (string-trim question) "\n\n" (car taken)) (cdr taken)))
    (contexture-repl-code--show buffer)))

;;;; Rewriting

;;;###autoload
(defun contexture-rewrite (instruction &optional session)
  "Have a model rewrite the region or the definition around point.
INSTRUCTION says how.  The new code is shown at that place while it comes
in; \\<contexture-review-map>there, \\[contexture-review-accept] accepts it \
and \\[contexture-review-reject] rejects it.  You need not
wait to ask for further changes.  With a prefix argument, choose the
conversation SESSION to go on in; otherwise see `contexture-repl-continue'."
  (interactive (progn (contexture-review--check)
                      (contexture-repl-code--bounds)
                      (list (contexture-mention--ask "Rewrite this code how? "
                                                    'contexture-rewrite-history)
                            (contexture-repl-code--read-session current-prefix-arg))))
  (when (string-blank-p instruction)
    (user-error "Say how to rewrite the code"))
  (contexture-review--check)
  (let* ((bounds (contexture-repl-code--bounds))
         (buffer (contexture-repl-code--clean session))
         (taken (contexture-repl-code--take bounds buffer)))
    (setf (contexture-repl--origin-name (cdr taken)) instruction)
    (contexture-repl-code--rewrite
     buffer
     (format "Rewrite the code below: %s\nChange nothing else, and answer with all of \
the rewritten code, and nothing but it, in one fenced block.\n\n%s"
             (contexture-repl-code--sentence instruction) (car taken))
     (cdr taken))
    (contexture-repl-code--tell buffer (contexture-repl--project-here))))

;;;###autoload
(defalias 'contexture-rewrite-region #'contexture-rewrite)

(defun contexture-repl-code--rewrite (session text origin)
  "Ask TEXT in SESSION, a buffer, and propose the answer in place of ORIGIN."
  (with-current-buffer (contexture-repl--origin-buffer origin)
    (let ((review (contexture-review--begin
                   (contexture-repl--origin-beg origin) (contexture-repl--origin-end origin)
                   :again (apply-partially #'contexture-repl-code--again session origin)
                   :cancel (apply-partially #'contexture-repl-code--stop session origin))))
      (setf (contexture-repl--origin-watch origin)
            (apply-partially #'contexture-repl-code--watch session origin review))))
  (setq deactivate-mark t)
  (with-current-buffer session
    (setq contexture-repl-code--waiting
          (append contexture-repl-code--waiting (list (cons text origin))))
    (add-hook 'contexture-repl-turn-ended-hook #'contexture-repl-code--next-soon nil t)
    (contexture-repl-code--next session)))

(defun contexture-repl-code--next-soon ()
  "Ask the next waiting question of this conversation as soon as Emacs is idle."
  (contexture--later (apply-partially #'contexture-repl-code--next (current-buffer))))

(defun contexture-repl-code--next (session)
  "Ask the next waiting question of SESSION, a conversation's buffer.
Do nothing if a question is still being answered there."
  (when (buffer-live-p session)
    (with-current-buffer session
      (unless (contexture-repl--busy-p)
        (when-let* ((next (pop contexture-repl-code--waiting)))
          (contexture-repl--ask (car next) (cdr next)))))))

(defun contexture-repl-code--again (session origin remark)
  "Ask in SESSION, a buffer, to change the code of ORIGIN again.
REMARK says what should be different from the change that was proposed."
  (unless (buffer-live-p session)
    (user-error "The conversation's buffer was killed; ask for a new change"))
  (let ((bounds (contexture-repl--locate origin)))
    (with-current-buffer (contexture-repl--origin-buffer origin)
      (contexture-review--drop-in (car bounds) (cdr bounds))
      (let ((taken (contexture-repl-code--take bounds session)))
        (contexture-repl-code--rewrite
         session
         (format "Once more: %s\nAnswer with all of the rewritten code, and nothing but it, \
in one fenced block.\n\n%s"
                 (contexture-repl-code--sentence remark) (car taken))
         (cdr taken))))))

(defun contexture-repl-code--stop (session origin)
  "Stop asking about ORIGIN in SESSION, a buffer.
Withdraw the question if it waits; else cancel the answer."
  (when (buffer-live-p session)
    (with-current-buffer session
      (if (cl-find origin contexture-repl-code--waiting :key #'cdr)
          (setq contexture-repl-code--waiting
                (cl-remove origin contexture-repl-code--waiting :key #'cdr))
        (contexture-repl-cancel)))))

(defun contexture-repl-code--watch (session origin review answer state)
  "Show the code of ANSWER in REVIEW, a change that is proposed for ORIGIN.
STATE is `more', `done' or `failed'; SESSION is the conversation's buffer."
  (unless (contexture-review--ended-p review)
    (let ((code (contexture-repl-code--last-block answer)))
      (cond ((and code (eq state 'more))
             (contexture-review--show review code))
            ((eq state 'more))
            ((and code (eq state 'done))
             (when (contexture-review--show
                    review (contexture-repl--fit code (contexture-repl--origin-text origin)) t)
               (contexture-review--say-where review)))
            (t
             (contexture-review--end review)
             (display-buffer session)
             (contexture--message
              (if (eq state 'done) "The answer has no code; it is in %s"
                "No new code arrived; %s says why")
              (buffer-name session)))))))

(defun contexture-repl-code--last-block (answer)
  "Return the code of the last block in ANSWER, or nil.
The block may lack its closing fence, while it comes in."
  (with-temp-buffer
    (insert answer)
    (goto-char (point-min))
    (let (code)
      (while (re-search-forward "^ \\{0,3\\}\\(`\\{3,\\}\\|~\\{3,\\}\\).*\n" nil t)
        (let* ((start (point))
               (fence (match-string 1))
               (closed (re-search-forward
                        (format "^ \\{0,3\\}%s%c*[ \t]*$" fence (aref fence 0)) nil t)))
          (setq code (buffer-substring start (if closed (match-beginning 0) (point-max))))
          (unless closed (goto-char (point-max)))))
      code)))

(defun contexture-repl-code--sentence (text)
  "Return TEXT, trimmed, with a full stop unless it ends a sentence."
  (let ((text (string-trim text)))
    (if (string-match-p "[.!?]\\'" text) text (concat text "."))))

;;;###autoload
(defun contexture-insert-last-response (&optional code-only)
  "Insert at point the last answer in this project's last conversation.
That is the conversation that `contexture-repl' shows; its buffer must be
there.  With a prefix argument, CODE-ONLY, insert only the last block of
code of an answer."
  (interactive "*P")
  (let* ((project (contexture-repl--project-here))
         (text (with-current-buffer
                   (or (contexture-repl--last-of project)
                       (user-error "No conversation %s has a buffer; M-x contexture-repl opens one"
                                   (if project
                                       (concat "of " (contexture--project-label project))
                                     "without a project")))
                (if code-only
                    (contexture-repl-markdown--block-text
                     (or (contexture-repl--last-block)
                         (user-error "No answer in the conversation has a block of code")))
                  (contexture-repl--message-text
                   (or (cl-find-if
                        (lambda (it)
                          (and (eq (contexture-repl--message-role it) :assistant)
                               (contexture-repl--message-text it)))
                        contexture-repl--messages)
                       (user-error "The conversation has no answer yet")))))))
    (push-mark)
    (insert text)))

(provide 'contexture-repl)
;;; contexture-repl.el ends here
