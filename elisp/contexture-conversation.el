;;; contexture-conversation.el --- Talk with a model  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-conversation' opens a conversation in a buffer: its messages, the
;; items of the context with their tokens, and a prompt.  Your question
;; goes to the model together with the context, and the answer appears while
;; it comes in.  The server keeps the conversation, so it is still there after
;; Emacs or the server restarts; so are your unsent drafts.
;;
;; contexture-conversation-view.el draws, and contexture-conversation-turn.el asks.  Here
;; are the settings, the commands behind a slash, the uses of code in an
;; answer, the mode itself, and questions about code from its own buffer.

;;; Code:

(require 'easymenu)
(require 'contexture-conversation-turn)
(require 'contexture-code)
(require 'contexture-picture)
(require 'contexture-sources)
(eval-when-compile (require 'subr-x))

(autoload 'contexture-conversations--report-rolled-back "contexture-conversations")
(autoload 'contexture-conversations--send-no-memories "contexture-conversations")
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

(defvar contexture-conversation-model-history nil
  "Minibuffer history of models and providers.")

(defvar contexture-question-history nil
  "Minibuffer history of questions to models.")

(defvar-local contexture-conversation--templates nil
  "Names of the usable templates that take notes, as last reported.")

(defvar-local contexture-conversation--untrusted nil
  "Alist from the names of untrusted templates to their files, as last reported.
They are the project's own templates if the project is not trusted.")

(defvar-local contexture-conversation--models nil
  "Alist from the name of a provider to the list of its models, as far as known.
The value is `asked' until the provider has answered.")

(defconst contexture-conversation--patience 0.5
  "Maximum number of seconds that completion waits for providers' models.")

(defconst contexture-conversation--questions
  '("document" "explain" "fix-error" "review" "write-tests")
  "Names of templates that make questions about code and take no notes.")

;;;; Notes

(defun contexture-conversation-switch-notes (kind)
  "Have notes of KIND taken on the history from now on; \"off\" means none.
The model then gets these notes and the last turns instead of the whole
history; the log keeps everything.  An answer that is coming in is not
affected."
  (interactive
   (let ((names (cons "off" (contexture-conversation--template-names))))
     (list (completing-read
            (format-prompt "Notes of the kind"
                           (contexture--visible (contexture-conversation--other-template)))
            names nil nil nil nil (contexture-conversation--other-template)))))
  (if (member kind '("off" "" nil))
      (progn (contexture-conversation--choose :manage nil)
             (contexture-conversation--configure :manage nil)
             (message "From now on, the whole history is sent"))
    (contexture-conversation--wanting
     kind (lambda () (contexture-conversation--have-managed kind)))))

(defun contexture-conversation--have-managed (template)
  "Have TEMPLATE take notes on the history from now on.
If the server refuses it, restore the settings, unless they changed meanwhile."
  (let ((before (copy-sequence contexture-conversation--settings)))
    (contexture-conversation--choose :template template)
    (contexture-conversation--choose :manage t)
    (contexture-conversation--configure-then
     (list :manage t :template template)
     (lambda ()
       (contexture--message "From now on, notes of the kind %s are taken on the history" template))
     (lambda () ;; Do nothing if another template was chosen since.
       (when (equal (plist-get contexture-conversation--settings :template) template)
         (contexture-conversation--choose :template (plist-get before :template))
         (contexture-conversation--choose :manage (plist-get before :manage)))))))

(defun contexture-conversation--template-names ()
  "Return the names of templates that take notes, including untrusted ones."
  (delete-dups (append contexture-conversation--templates
                       (cl-remove-if (lambda (name)
                                       (member name contexture-conversation--questions))
                                     (mapcar #'car contexture-conversation--untrusted)))))

(defun contexture-conversation--wanting (template then)
  "Call THEN in this buffer, but first settle whether to trust TEMPLATE.
If TEMPLATE is the project's own, and the project is not trusted, ask the
user, once in this Emacs, whether to trust it.  Call THEN in any case."
  (if (not (assoc template contexture-conversation--untrusted)) (funcall then)
    (require 'contexture-doctor)
    (let ((buffer (current-buffer)))
      (contexture-trust--ask
       (directory-file-name
        (or (contexture--outside-folder (plist-get contexture-conversation--session :project))
            (contexture--user-error "The project %s is no folder of this machine"
                                    (plist-get contexture-conversation--session :project))))
       (delq nil (mapcar #'cdr contexture-conversation--untrusted))
       (lambda (trusted)
         (contexture--with-live-buffer buffer
           (when trusted (contexture-conversation--ask-templates))
           (funcall then)))))))

(defun contexture-conversation--other-template ()
  "Return \"off\" if notes are on, else the template that would take them."
  (if (plist-get contexture-conversation--settings :manage) "off"
    (or (plist-get contexture-conversation--settings :template)
        (car (member "freeform-chat" contexture-conversation--templates))
        (car contexture-conversation--templates)
        "freeform-chat")))

(defun contexture-conversation-toggle-notes ()
  "Turn notes on the history off, or on with the kind chosen last."
  (interactive)
  (contexture-conversation-switch-notes (contexture-conversation--other-template)))

(defun contexture-conversation-choose-notes (event)
  "Choose the kind of notes from a menu, at the click EVENT."
  (interactive "e")
  (with-current-buffer (window-buffer (posn-window (event-start event)))
    (popup-menu (easy-menu-create-menu "Kind of notes" (contexture-conversation--template-menu))
                event)))

(defun contexture-conversation--ask-templates ()
  "Fetch the templates that can take notes, trusted and untrusted ones."
  (contexture-conversation--request
   'list-templates
   (contexture--plist :project (plist-get contexture-conversation--session :project))
   (lambda (templates)
     (setq contexture-conversation--templates
           (cl-loop for template in templates
                    for name = (plist-get template :name)
                    unless (or (plist-get template :error)
                               (contexture-conversation--untrusted-p template)
                               (member name contexture-conversation--questions))
                    collect (contexture--visible-candidate name))
           contexture-conversation--untrusted
           (cl-loop for template in templates
                    when (contexture-conversation--untrusted-p template)
                    collect (cons (plist-get template :name)
                                  (plist-get template :path)))))
   #'ignore))

(defun contexture-conversation--untrusted-p (template)
  "Return non-nil if TEMPLATE, an entry of the server, is not trusted."
  (and (plist-member template :trusted) (not (plist-get template :trusted))))

(defun contexture-conversation--trust-changed (project)
  "Fetch the templates again in the conversations of PROJECT, a root."
  (dolist (buffer (contexture-conversation--buffers))
    (with-current-buffer buffer
      (let ((own (plist-get contexture-conversation--session :project)))
        (when (and (contexture--outside-folder own)
                   (file-equal-p (contexture--outside-folder own) project))
          (contexture-conversation--ask-templates))))))

;;;; A template for one question

(defun contexture-conversation--complete-directive ()
  "Complete a line \"@context-helper NAME\", which names a question's template.
This is a function for `completion-at-point-functions'."
  (when (>= (point) contexture-conversation--input)
    (let ((before (buffer-substring-no-properties contexture-conversation--input (point))))
      (cond ((string-match "\\`@context-helper[ \t]+\\([^ \t\n]*\\)\\'" before)
             (list (+ contexture-conversation--input (match-beginning 1)) (point)
                   contexture-conversation--templates :exclusive 'no))
            ((and (>= (length before) (length "@context-"))
                  (string-prefix-p before contexture-conversation--directive))
             (list (marker-position contexture-conversation--input) (point)
                   (list contexture-conversation--directive) :exclusive 'no))))))

;;;; Models

(defun contexture-conversation-switch-model (model &optional provider)
  "Use MODEL of PROVIDER in this conversation from now on.
MODEL may also be the name of a provider, which means its model.  An empty
name means the server's default.  Interactively, complete over providers
and their models; with a prefix argument, ask for the provider, too."
  (interactive
   (list (contexture-conversation--read-model)
         (and current-prefix-arg
              (read-string "Provider: " nil 'contexture-conversation-model-history))))
  (let ((model (and model (not (string-blank-p model)) model))
        (provider (and provider (not (string-blank-p provider)) provider)))
    (cond (provider)
          ((contexture-conversation--provider model) (setq provider model model nil))
          (t (setq provider (contexture-conversation--provider-with model))))
    (contexture-conversation--choose :model model)
    (contexture-conversation--choose :provider provider)
    (setq contexture-conversation--answered-by nil)
    (contexture-conversation--draw-header)
    (contexture-conversation--fetch-stats)
    (contexture--message "From now on, %s answers"
                         (or (contexture-conversation--model) "the server's default model"))))

(defun contexture-conversation--provider-with (model)
  "Return the name of a provider that is known to have MODEL, or nil.
Prefer the provider chosen in this conversation."
  (let ((having (cl-loop for (provider . models) in contexture-conversation--models
                         when (and (listp models) (member model models))
                         collect provider)))
    (or (car (member (plist-get contexture-conversation--settings :provider) having))
        (car having))))

(defun contexture-conversation--read-model ()
  "Ask for the name of a model or a provider; return it."
  (contexture-conversation--ask-models)
  (completing-read (format-prompt "Model" (contexture--visible (contexture-conversation--model)))
                   (contexture-conversation--model-table)
                   nil nil nil 'contexture-conversation-model-history (contexture-conversation--model)))

(defun contexture-conversation--model-table ()
  "Return a completion table of providers and their known models.
It is computed for each completion, since models come in while the user types."
  (let ((buffer (current-buffer)))
    (contexture--table-of
     (lambda ()
       (and (buffer-live-p buffer)
            (with-current-buffer buffer (contexture-conversation--model-names))))
     'contexture-model #'contexture-conversation--annotate-model)))

(defun contexture-conversation--model-names ()
  "Return the names of all providers, and of their models known by now."
  (delete-dups
   (append (mapcar (lambda (it) (plist-get it :name)) (contexture-conversation--known-providers))
           (cl-loop for (_ . models) in contexture-conversation--models
                    when (listp models) append models))))

(defun contexture-conversation--annotate-model (name)
  "Return the annotation of NAME, a provider or a model, or \"\"."
  (let ((buffer (if (minibufferp) (window-buffer (minibuffer-selected-window))
                  (current-buffer))))
    (with-current-buffer buffer
      (if-let* ((provider (contexture-conversation--provider name)))
          (contexture--format "  %s" (plist-get provider :model))
        (let* ((provider (contexture-conversation--provider-with name))
               (models (cdr (assoc provider contexture-conversation--models))))
          (if provider
              (concat (contexture--format "  of %s" provider)
                      (contexture--model-about
                       (and (listp models) (car (member name models)))))
            ""))))))

(defun contexture-conversation--ask-models ()
  "Ask each provider for its models, unless it has answered or was just asked.
Emacs does not wait for the answers."
  (dolist (provider (contexture-conversation--known-providers))
    (let ((name (plist-get provider :name)))
      (unless (assoc name contexture-conversation--models)
        (push (cons name 'asked) contexture-conversation--models)
        (contexture-conversation--request
         'list-providers (list :models t :provider name)
         (lambda (result)
           (setf (alist-get name contexture-conversation--models nil nil #'equal)
                 (contexture--model-names result)))
         (lambda (_)                    ; next time it is asked again
           (setq contexture-conversation--models
                 (cl-delete name contexture-conversation--models
                            :key #'car :test #'equal))))))))

(defun contexture-conversation--ask-providers ()
  "Fetch the providers; if there are none, say how to set one up."
  (contexture-conversation--request
   'list-providers nil
   (lambda (providers)
     (setq contexture-conversation--providers (or providers 'none)
           contexture-conversation--models nil)
     (contexture-conversation--draw-header)
     (if providers (contexture-conversation--forget-no-model)
       (contexture-conversation--note-no-model)))
   #'ignore))

(defun contexture-conversation--note-no-model ()
  "Draw a remark on how to set up a model, if there is no provider."
  (when (eq contexture-conversation--providers 'none)
    (contexture-conversation--forget-no-model)
    (contexture-conversation--note contexture-conversation--no-model nil
                                   'contexture-intro t 'contexture-no-model t)))

(defun contexture-conversation--forget-no-model ()
  "Remove the remark that no model is set up, if it is there."
  (let ((at (text-property-any (point-min) contexture-conversation--tail 'contexture-no-model t)))
    (when at
      (contexture-conversation--changing
        (delete-region at (next-single-property-change at 'contexture-no-model nil
                                                       contexture-conversation--tail))))))

;;;; The menu

(defun contexture-conversation--template-menu (&rest _)
  "Return the entries of the menu of templates, as easymenu takes them."
  (append
   (mapcar (lambda (name)
             (vector name (lambda () (interactive) (contexture-conversation-switch-notes name))
                     :style 'radio
                     :selected `(and (plist-get contexture-conversation--settings :manage)
                                     (equal ,name (plist-get contexture-conversation--settings
                                                             :template)))))
           (contexture-conversation--template-names))
   (list "--"
         ["Send the whole history" (contexture-conversation-switch-notes "off")
          :style radio :selected (not (plist-get contexture-conversation--settings :manage))])))

(defun contexture-conversation--define-menu (map)
  "Define the menu of a conversation's buffer in the keymap MAP."
  (easy-menu-define nil map "Menu of a conversation with a model."
    '("Conversation"
      ["Send" contexture-conversation-send]
      ["Stop the answer" contexture-conversation-cancel :active (contexture-conversation--busy-p)]
      ["Ask again" contexture-conversation-retry]
      ["Change the question" contexture-conversation-edit]
      ["Branch into a new conversation" contexture-conversation-branch]
      "--"
      ["Take notes on the history" contexture-conversation-toggle-notes
       :style toggle :selected (plist-get contexture-conversation--settings :manage)]
      ("Kind of notes" :filter contexture-conversation--template-menu)
      ["Notes" (contexture-conversation-notes (contexture-conversation--session-id))]
      "--"
      ["Offer tools to the model"
       (contexture-conversation-tools (if (plist-get contexture-conversation--tool-settings :tools) 'off 'on))
       :style toggle :selected (plist-get contexture-conversation--tool-settings :tools)]
      ["Decide on the model's request" contexture-conversation-approve
       :active contexture-conversation--approvals]
      "--"
      ["Model..." contexture-conversation-switch-model]
      ["Conversation..." contexture-conversation-switch]
      ["Show what would be sent" contexture-conversation-preview]
      ["Items of the context" contexture-list])))

;;; Commands behind a slash

;; Commands to type at the prompt instead of a question: `/' and a name,
;; which completes with a description.  An Emacs command does the same as
;; each of them.

(defconst contexture-conversation--commands
  '(("context" nil "list the items of the context" contexture-list)
    ("add" "FILE or SYMBOL" "add a file or a definition" contexture-conversation--do-add)
    ("drop" "ITEM" "remove an item of the context" contexture-conversation--do-drop)
    ("memories" "WORDS" "put what is remembered of them at the prompt"
     contexture-conversation--do-memories)
    ("clear" nil "remove all items; /undo brings them back" contexture-clear)
    ("undo" nil "undo the last change to the context" contexture-undo)
    ("redo" nil "redo the change that was undone last" contexture-redo)
    ("stats" nil "show how much of the limit is used" contexture-conversation--do-stats)
    ("explain" nil "show why each part was sent or not" contexture-explain)
    ("back" "TURN" "go back to a turn: its number, or how its question began"
     contexture-conversation--do-back)
    ("notes" "KIND, off or list" "have notes taken, or list them turn by turn"
     contexture-conversation--do-notes)
    ("tools" "on, off, allow NAME" "choose which tools models may use"
     contexture-conversation--do-tools)
    ("model" "NAME" "choose the model" contexture-conversation-switch-model)
    ("conversation" "NAME" "switch to a conversation, or start one" contexture-conversation-switch)
    ("preview" "QUESTION" "show what would be sent" contexture-conversation--do-preview)
    ("retry" nil "ask the last question again" contexture-conversation--do-retry)
    ("help" nil "list these commands" contexture-conversation--do-help))
  "The commands, as (NAME ARGUMENT WHAT FUNCTION).
FUNCTION is called with the text after the name, perhaps empty.  If it is
a command of Emacs, and there is no such text, it is called interactively.")

(defconst contexture-conversation-preview-buffer "*contexture: what would be sent*"
  "Name of the buffer that shows what would be sent.")

;;;; Running

(defun contexture-conversation--run-command (text)
  "Run the command TEXT; if it fails, put it back at the prompt.
It may also fail later; see `contexture-conversation--running'."
  (string-match "\\`/\\([a-z-]*\\)[ \t\n]*" text)
  (let* ((name (match-string 1 text))
         (argument (contexture--trim (substring text (match-end 0))))
         (entry (or (assoc name contexture-conversation--commands)
                    (contexture--user-error "There is no command /%s; /help lists them" name))))
    (contexture-conversation--set-text "")
    (condition-case problem
        (let ((contexture-conversation--running (cons (current-buffer) (contexture--trim text))))
          (pcase-let ((`(,takes ,_ ,function) (cdr entry)))
            (if (and (commandp function) (or (null takes) (string-empty-p argument)))
                (call-interactively function)
              (funcall function argument))))
      ((error quit)
       (contexture-conversation--set-text text)
       (signal (car problem) (cdr problem))))
    (contexture-conversation--remember (contexture--trim text))))

(defun contexture-conversation--given (argument function)
  "Return ARGUMENT or, if it is empty, what FUNCTION, which asks, returns."
  (if (string-empty-p argument) (funcall function) argument))

(defun contexture-conversation--do-add (name)
  "Add the file, directory or symbol NAME, or a file to ask for if it is empty."
  (let* ((name (replace-regexp-in-string "\\`@" "" name))
         (file (contexture--outside-file name (contexture-conversation--root))))
    (cond ((string-empty-p name) (call-interactively #'contexture-add-file))
          ((contexture--remote-p name) (contexture-add-file name))
          ((null file) (contexture--user-error "%s is packed, or no file" name))
          ((file-directory-p file) (contexture-add-directory file))
          ((file-exists-p file) (contexture-add-file file))
          (t (contexture-add-symbol name)))))

(defun contexture-conversation--do-drop (name)
  "Remove the item called NAME, or one to ask for if NAME is empty."
  (if (string-empty-p name)
      (call-interactively #'contexture-remove)
    (let ((found (cl-remove-if-not
                  (lambda (item)
                    (member name (list (plist-get item :id)
                                       (contexture-conversation--item-name item))))
                  contexture-conversation--items)))
      (pcase (length found)
        (0 (contexture--user-error "The context has no item called %s" name))
        (1 (contexture-conversation--request
            'remove-items (list :manager (or (plist-get (car found) :manager)
                                             contexture-context)
                                :id (plist-get (car found) :id))
            (lambda (_) (contexture--message "Removed %s" name))))
        (_ (contexture--user-error "%d items are called %s; /drop one of the ids %s"
                       (length found) name
                       (mapconcat (lambda (it) (plist-get it :id)) found ", ")))))))

(defun contexture-conversation--do-memories (words)
  "Put the memories that match WORDS at the prompt, where they can be edited."
  (when (string-empty-p words)
    (user-error "Say what the memories are to be about, as in /memories port"))
  (contexture-conversation--request
   'ground-query (list :query words :session (contexture-conversation--session-id))
   (lambda (found)
     (if (null (plist-get found :memories))
         (contexture--message "No memory matches %s" words)
       (contexture-conversation--set-text (concat (contexture-conversation--text)
                                                  (plist-get found :summary) "\n\n"))))))

(defun contexture-conversation--do-retry (_)
  "Ask the last question again."
  (let ((contexture-conversation--running nil)) ; only the question goes back to the prompt
    (contexture-conversation-retry)))

(defun contexture-conversation--do-stats (_)
  "Show how full the model's window is, with the numbers of the header line."
  (contexture-conversation--request
   'count-window (contexture-conversation--count-params)
   (lambda (count)
     (contexture-conversation--request-stats
      (lambda (stats)
        (setq contexture-conversation--stats stats)
        (contexture-conversation--draw-header)
        (let ((tokens (plist-get count :tokens))
              (limit (plist-get count :max-tokens)))
          (contexture-conversation--note
           (format
            "%s sent with %s of %d (%.1f %%), %s in the log, %s; %d left out, \
%d shortened, %d pinned"
            (contexture--count (plist-get (plist-get count :messages) :sent) "message")
            (contexture--count tokens "token")
            limit (/ (* 100.0 tokens) (max 1 limit))
            (or (plist-get stats :log) 0)
            (contexture--count (or (plist-get stats :turns) 0) "turn")
            (or (plist-get stats :pruned) 0) (or (plist-get stats :summarized) 0)
            (or (plist-get stats :pinned) 0)))))))))

(defun contexture-conversation--do-notes (kind)
  "List the notes if KIND is \"list\"; else have notes of KIND taken, or none.
If KIND is empty, ask."
  (cond ((equal kind "list")
         (contexture-conversation-notes (contexture-conversation--session-id)))
        ((string-empty-p kind) (call-interactively #'contexture-conversation-switch-notes))
        (t (contexture-conversation-switch-notes kind))))

(defun contexture-conversation--do-back (name)
  "Go back to the turn NAME, a number or how its question began.
If NAME is empty, ask for the turn; if several have that name, take the last."
  (contexture-conversation--check-idle)
  (let ((name (contexture-conversation--given name #'contexture-conversation--read-turn)))
    (contexture-conversation--request
     'list-operations (list :session (contexture-conversation--session-id) :checkpoints t)
     (lambda (turns)
       (let ((found (cl-find-if (lambda (it) (contexture-conversation--turn-named-p it name))
                                turns)))
         (if found (contexture-conversation--roll-back-to (plist-get found :checkpoint))
           (contexture-conversation--show-problem
            (list :message (format "No turn is called %s; /back without a name \
lists the turns" name)))))))))

(defun contexture-conversation--turn-named-p (turn name)
  "Return non-nil if NAME is the number or the name of TURN, the server's entry."
  (or (equal name (plist-get turn :message))
      (equal name (contexture-conversation--turn-number turn))
      (equal name (format "%s" (plist-get turn :turn)))))

(defun contexture-conversation--turn-number (turn)
  "Return the number of TURN, an entry of the server, as users see it."
  (format "turn %s" (plist-get turn :turn)))

(defun contexture-conversation--roll-back-to (id)
  "Go back to the turn with ID, and redraw the conversation."
  (contexture-conversation--roll-back
   id
   (lambda (result)
     (contexture-conversations--report-rolled-back result)
     (let ((contexture-conversation--running nil)) (contexture-conversation-redraw)))
   #'contexture-conversation--show-problem))

(defun contexture-conversation--turns ()
  "Return the turns of this conversation to go back to, the newest first."
  (contexture--ask 'list-operations
                   (list :session (contexture-conversation--session-id) :checkpoints t)))

(defun contexture-conversation--read-turn ()
  "Ask for a turn of this conversation; return its number or its name."
  (completing-read "Go back to: "
                   (contexture-conversation--turn-table
                    (or (contexture-conversation--turns)
                        (user-error "This conversation has no turn to go back to yet")))
                   nil t))

(defun contexture-conversation--turn-note (name turns)
  "Return the annotation of NAME, the number or the name of one of TURNS.
That is the name for a number, else \"\"."
  (let ((found (cl-find name turns :test #'equal
                        :key #'contexture-conversation--turn-number)))
    (if found (concat "  " (contexture--visible (or (plist-get found :message) ""))) "")))

(defun contexture-conversation--turn-table (turns)
  "Return a completion table of the numbers and the names of TURNS."
  (contexture--table
   (delete-dups (append (mapcar #'contexture-conversation--turn-number turns)
                        (delq nil (contexture--pluck :message turns))))
   'contexture-turn
   (lambda (name) (contexture-conversation--turn-note name turns))))

(defun contexture-conversation--do-tools (text)
  "Offer the server's tools or not, list them, or allow one, as TEXT says."
  (let ((words (split-string text)))
    (if (member words '(nil ("list")))
        (contexture-conversation--note (contexture-conversation--tools-text))
      (contexture-conversation-tools (intern (car words)) (cadr words)))))

(defun contexture-conversation--do-help (_)
  "List the slash commands."
  (contexture-conversation--note
   (concat
    (mapconcat (lambda (entry)
                 (format "/%-26s %s"
                         (concat (car entry) (if (nth 1 entry) (concat " " (nth 1 entry)) ""))
                         (nth 2 entry)))
               contexture-conversation--commands "\n")
    (substitute-command-keys
     "\n\\[contexture-conversation-newline] begins a line, \\[contexture-conversation-cancel] stops an \
answer, \\[contexture-conversation-retry] asks again,\n\\[contexture-conversation-edit] changes a \
question, \\[contexture-conversation-branch] branches into a new conversation,\n\
\\[contexture-conversation-copy-block] copies code, \\[contexture-conversation-apply] applies it; \
\\[describe-mode] shows all keys."))))

;;;; What would be sent

(defun contexture-conversation--do-preview (text)
  "Show the request that asking TEXT would send; ask for an empty TEXT."
  (contexture-conversation-preview (contexture-conversation--given
                                    text (lambda () (contexture-mention--ask "Question: "
                                                              'contexture-question-history)))))

(defun contexture-conversation-preview (text)
  "Show the request that asking TEXT would send to the model.
Interactively, TEXT is the text at the prompt or, if that is empty, \"(your
question)\".  What TEXT names with `@' is part of it.  Nothing is sent."
  (interactive
   (list (if (string-blank-p (contexture-conversation--text)) "(your question)"
           (contexture--trim (buffer-substring contexture-conversation--input (point-max))))))
  (contexture-conversation--when-known
   (contexture-conversation--begin-mentions text)
   (lambda (asked)
     (let ((mentioned (contexture-conversation--take-mentions asked))
           (text (substring-no-properties text)))
       (contexture-conversation--request
        'chat (contexture-conversation--chat-params
               text (and mentioned (contexture-conversation--managers)) :dry-run t)
        #'contexture-conversation--show-preview
        (lambda (problem)
          (contexture-conversation--note-problem problem)
          (contexture-conversation--give-back text)))))))

(defun contexture-conversation--show-preview (result)
  "Show RESULT, that of a dry run of `chat', in its own buffer."
  (let ((payload (plist-get result :payload)))
    (with-current-buffer (get-buffer-create contexture-conversation-preview-buffer)
      (let ((inhibit-read-only t))
        (special-mode)
        (erase-buffer)
        (insert (format "This would be sent: %s\n\n"
                        (contexture-count--phrase result)))
        (dolist (part (plist-get result :parts))
          (let ((section (contexture--part-name (plist-get part :section)))
                (role (contexture--name (plist-get part :role))))
            (insert (contexture--trim-right
                     (contexture--format "%8d  %-15s  %-9s  %s"
                                         (or (plist-get part :tokens) 0)
                                         section (or role "")
                                         (or (plist-get part :id) "")))
                    "\n")))
        (insert "\n" (contexture-conversation--pretty payload))
        (contexture--show-hidden)
        (goto-char (point-min)))
      (pop-to-buffer (current-buffer)))))

;;;; Completion

(defun contexture-conversation--complete ()
  "Complete the slash command at the prompt, or its argument.
This is a function for `completion-at-point-functions'."
  (when (and (>= (point) contexture-conversation--input)
             (eq (char-after contexture-conversation--input) ?/))
    (let ((before (buffer-substring-no-properties contexture-conversation--input (point))))
      (cond ((string-match "\\`/[a-z-]*\\'" before)
             (list (1+ contexture-conversation--input)
                   (save-excursion (skip-chars-forward "a-z-") (point))
                   (mapcar #'car contexture-conversation--commands)
                   :annotation-function #'contexture-conversation--annotate
                   :company-docsig #'contexture-conversation--annotate
                   :exit-function #'contexture-conversation--command-chosen))
            ((string-match "\\`/\\([a-z-]+\\)[ \t]+\\([^\n]*\\)\\'" before)
             (contexture-conversation--complete-argument
              (match-string 1 before)
              (+ contexture-conversation--input (match-beginning 2))))))))

(defun contexture-conversation--annotate (name)
  "Return the annotation of the slash command NAME: argument and description."
  (let ((entry (assoc name contexture-conversation--commands)))
    (concat (if (nth 1 entry) (concat " " (nth 1 entry)) "") "  " (nth 2 entry))))

(defun contexture-conversation--command-chosen (name status)
  "Insert a space after the slash command NAME if it takes an argument.
Do that only if STATUS says that completion is finished."
  (when (and (memq status '(finished sole))
             (nth 1 (assoc name contexture-conversation--commands))
             (not (eq (char-after) ?\s)))
    (insert " ")))

(defun contexture-conversation--complete-argument (command start)
  "Complete the argument of the slash COMMAND; the argument begins at START."
  (let ((table (pcase command
                 ("notes" (append '("off" "list") contexture-conversation--templates))
                 ("model" (contexture-conversation--ask-models)
                  (let ((end (+ (float-time) contexture-conversation--patience)))
                    (while (and (rassq 'asked contexture-conversation--models)
                                (< (float-time) end) (not (input-pending-p)))
                      (accept-process-output nil 0.02)))
                  (contexture-conversation--model-table))
                 ("tools"
                  (pcase (split-string
                          (buffer-substring-no-properties start (point))
                          "[ \t]+")
                    (`(,_) '("on" "off" "list" "allow" "ask"))
                    (`(,(and what (or "allow" "ask")) ,_)
                     (contexture-conversation--tool-choices (intern what)))))
                 ("back" (contexture-conversation--turn-table
                          (contexture-conversation--turns)))
                 ("drop" (mapcar #'contexture-conversation--item-name contexture-conversation--items))
                 ("add" (let ((root (contexture-conversation--root)))
                          (lambda (string predicate action)
                            (let ((default-directory root))
                              ;; A part of a name connects to no other machine.
                              (contexture--inertly
                                (completion-file-name-table string predicate action)))))))))
    (when table
      (unless (member command '("add" "model" "back")) (setq table (contexture--texts table)))
      (list (if (equal command "tools") ; its last word; names may have blanks
                (save-excursion (skip-chars-backward "^ \t\n" start) (point))
              start)
            (point) table))))

;;; Use the code of an answer

;; Copies and inserts the code between the fences of an answer, and proposes
;; it in place of what it belongs to: the code that was asked about, or the
;; definition with the same name.

;;;; Blocks

(defun contexture-conversation--block-here ()
  "Return a position in the block of code at point, or else in the last one."
  (if (get-text-property (point) 'contexture-block) (point)
    (or (contexture-conversation--last-block)
        (user-error "No answer in this buffer has a block of code"))))

(defun contexture-conversation--last-block ()
  "Return a position in the last block of code that a model wrote, or nil."
  (contexture-conversation--draw-all)
  (let ((position (marker-position contexture-conversation--tail)) found)
    (while (and (not found) (> position (point-min)))
      (let* ((before (1- position))
             (message (contexture-conversation--message-at before)))
        (if (and (get-text-property before 'contexture-block)
                 message
                 (eq (contexture-conversation--message-role message) :assistant))
            (setq found before)
          (setq position (previous-single-property-change
                          position 'contexture-block nil (point-min))))))
    found))

(defun contexture-conversation-copy-block ()
  "Copy the block of code at point, by default the last one, to the kill ring."
  (interactive)
  (let ((text (contexture-markdown--block-text (contexture-conversation--block-here))))
    (kill-new text)
    (contexture--message "Copied %s" (contexture--count
                          (length (split-string text "\n" t)) "line"))))

(defun contexture-conversation-insert-block (buffer)
  "Insert the block of code at point, by default the last one, in BUFFER.
Interactively, BUFFER is that of another window; with a prefix argument,
or if there is no other window, choose one."
  (interactive (list (contexture-conversation--other-buffer current-prefix-arg)))
  (let ((text (contexture-markdown--block-text (contexture-conversation--block-here))))
    (with-current-buffer buffer
      (barf-if-buffer-read-only)
      (let ((window (get-buffer-window buffer t)))
        (when window (goto-char (window-point window)))
        (push-mark)
        (insert text)
        (when window (set-window-point window (point)))))
    (contexture--message "Inserted the code in %s" (buffer-name (get-buffer buffer)))))

(defun contexture-conversation--other-buffer (ask)
  "Return a buffer in which to insert code; ask for it if ASK is non-nil.
Otherwise take that of a window, and ask only if no window has a suitable one."
  (let ((window (and (not ask)
                     (cl-find-if (lambda (window)
                                   (with-current-buffer (window-buffer window)
                                     (not (or buffer-read-only
                                              (derived-mode-p 'contexture-conversation-mode)))))
                                 (window-list)))))
    (if window (window-buffer window)
      (get-buffer (read-buffer "Insert in buffer: " (other-buffer) t)))))

(defun contexture-conversation-next-block (&optional count)
  "Go to the next block of code, or to that COUNT blocks forward."
  (interactive "p")
  (let ((step (if (< (or count 1) 0) -1 1)))
    (dotimes (_ (abs (or count 1)))
      (let* ((here (get-text-property (point) 'contexture-block))
             (starts (contexture-conversation--block-starts))
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

(defun contexture-conversation-previous-block (&optional count)
  "Go to the previous block of code, or to that COUNT blocks back."
  (interactive "p")
  (contexture-conversation-next-block (- (or count 1))))

(defun contexture-conversation--block-starts ()
  "Return the start positions of the blocks of code in this buffer, in order."
  (contexture-conversation--draw-all)
  (let ((position (point-min)) starts)
    (while (< position contexture-conversation--tail)
      (when (get-text-property position 'contexture-block)
        (push position starts))
      (setq position (next-single-property-change
                      position 'contexture-block nil contexture-conversation--tail)))
    (nreverse starts)))

;;;; Applying

(defun contexture-conversation-apply ()
  "Propose the block of code at point, by default the last one, as a change.
It replaces the code that the question was about.  If the block defines
something else, or the question was about no code, it replaces the
definition of that name in the context's files or the project's buffers.
\\<contexture-review-map>There, \\[contexture-review-accept] accepts the change \
and \\[contexture-review-reject] rejects it.  No file is saved."
  (interactive)
  (let* ((block (contexture-conversation--block-here))
         (message (contexture-conversation--message-at block))
         (code (contexture-markdown--block-text block))
         (origin (contexture-conversation--target
                  code (and message (contexture-conversation--message-origin message))))
         (bounds (contexture-conversation--locate origin))
         (session (current-buffer)))
    (with-current-buffer (contexture-conversation--origin-buffer origin)
      (contexture-review--check)
      (let* ((old (buffer-substring-no-properties (car bounds) (cdr bounds)))
             (new (contexture-conversation--fit code old)))
        (when (equal new old)
          (contexture--user-error "%s already has that code" (buffer-name)))
        (contexture-review--show
         (contexture-review--begin
          (car bounds) (cdr bounds)
          :again (apply-partially #'contexture-conversation-code--again session origin))
         new t))
      (contexture-review--go-to (car bounds)))))

(defun contexture-conversation--locate (origin)
  "Return the bounds of ORIGIN's code as a pair; visit its file if necessary.
Signal an error if the code cannot be found."
  (let ((buffer (contexture-conversation--origin-buffer origin))
        (file (contexture-conversation--origin-file origin)))
    (cond ((buffer-live-p buffer)
           (cons (copy-marker (contexture-conversation--origin-beg origin))
                 (copy-marker (contexture-conversation--origin-end origin) t)))
          ((and file (setq buffer (contexture--visit-outside file)))
           (setf (contexture-conversation--origin-buffer origin) buffer)
           (with-current-buffer (contexture-conversation--origin-buffer origin)
             (contexture-conversation--find-text (contexture-conversation--origin-text origin))))
          (t (user-error "The buffer with the old code is gone; copy or insert the new code")))))

(defun contexture-conversation--find-text (text)
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

(defun contexture-conversation--fit (text old)
  "Return TEXT with a newline at its end, or without one, as OLD has it."
  (let ((bare (contexture--trim-right text "\n")))
    (if (string-suffix-p "\n" old) (concat bare "\n") bare)))

;;;; The definition of a name

(defun contexture-conversation--target (code origin)
  "Return the origin of the code that CODE is to replace.
It is ORIGIN, that of the code that was asked about.  If ORIGIN is nil,
or CODE defines other names, it is the definition of the first of these
names, if there is one.  Ask the user if there are several."
  (let* ((names (contexture-conversation--defined-names code))
         (found (and (or (null origin)
                         (not (cl-intersection
                               names (contexture-conversation--defined-names
                                      (contexture-conversation--origin-text origin))
                               :test #'equal)))
                     (contexture-conversation--definitions (car names)))))
    (cond ((cdr found)
           (let ((prompt (format "Which definition of %s? " (car names))))
             (cdr (assoc (completing-read prompt found nil t) found))))
          (found (cdar found))
          (origin)
          ((null names)
           (user-error "Cannot tell which buffer to change; copy or insert the code"))
          (t (contexture--user-error "No file of the context and no buffer of the project \
defines %s; copy or insert the code" (car names))))))

(defun contexture-conversation--definitions (name)
  "Return the definitions of NAME in code buffers, each as (PLACE . ORIGIN).
PLACE is text for the user.  Return nil if NAME is nil."
  (when name
    (cl-loop for buffer in (contexture-conversation--code-buffers)
             append (with-current-buffer buffer
                      (save-restriction
                        (widen)
                        (mapcar #'contexture-conversation--definition-at
                                (contexture-defun--named name)))))))

(defun contexture-conversation--defined-names (code)
  "Return the names that CODE, a string, defines, in their order."
  (with-temp-buffer
    (insert code)
    (mapcar #'car (contexture-defun--heads))))

(defun contexture-conversation--code-buffers ()
  "Return buffers of the context's files, and those of files in the project.
Visit the context's files.  Without a project, take the buffers of files
below the folder of this conversation."
  (delete-dups
   (append (cl-loop for item in contexture-conversation--items
                    for name = (plist-get (plist-get item :metadata) :filename)
                    for file = (contexture--outside-file name)
                    for buffer = (or (contexture--visited-buffer name)
                                     (and file (file-exists-p file)
                                          (contexture--visit-quietly file)))
                    when buffer collect buffer)
           (contexture--project-buffers (contexture-conversation--root)))))

(defun contexture-conversation--definition-at (bounds)
  "Return (PLACE . ORIGIN) for the definition between BOUNDS in this buffer.
PLACE is the name of the buffer and a line number."
  (cons (format "%s:%d" (buffer-name) (line-number-at-pos (car bounds)))
        (contexture-conversation--make-origin
         :buffer (current-buffer) :file buffer-file-name
         :beg (copy-marker (car bounds)) :end (copy-marker (cdr bounds) t)
         :text (buffer-substring-no-properties (car bounds) (cdr bounds)))))

;;; Talk with a model

(defcustom contexture-conversation-own-context nil
  "Non-nil means that a new conversation has only items of its own.
Otherwise it also has the items of the project of the buffer where you
start it, and those for everywhere, so that the model sees what you add
to these, too."
  :type 'boolean
  :group 'contexture-conversation)

(defcustom contexture-conversation-continue nil
  "Non-nil means that the commands about code go on in the last conversation.
These commands make the question themselves, such as
`contexture-explain-code' and `contexture-rewrite'.  Otherwise they
begin a new conversation, so that the model sees no earlier questions.
A prefix argument lets you name the conversation to go on in."
  :type 'boolean
  :group 'contexture-conversation)

(defcustom contexture-conversation-hide-markup t
  "Non-nil means hide the asterisks, backquotes and other markup of answers.
This is for conversations opened from now on;
`contexture-conversation-toggle-markup' shows or hides the markup in the
current buffer."
  :type 'boolean
  :group 'contexture-conversation)

(defcustom contexture-conversation-shown-messages 100
  "Maximum number of messages to show when a conversation is opened.
`contexture-conversation-redraw' with a prefix argument shows all."
  :type 'natnum
  :group 'contexture-conversation)

(defvar-local contexture-conversation--items-timer nil
  "Timer that will fetch, or has fetched, the items of the context; or nil.
It is nil after the pause that follows the answer.")

(defvar-local contexture-conversation--items-again nil
  "Non-nil if the items have changed since they were last asked for.")

(defvar contexture-conversation-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-conversation-send)
    (define-key map (kbd "C-c C-c") #'contexture-conversation-send)
    (define-key map (kbd "C-j") #'contexture-conversation-newline)
    (define-key map (kbd "TAB") #'completion-at-point)
    (define-key map (kbd "M-p") #'contexture-conversation-previous-input)
    (define-key map (kbd "M-n") #'contexture-conversation-next-input)
    (define-key map (kbd "M-r") #'contexture-conversation-search-input)
    (define-key map (kbd "C-c C-k") #'contexture-conversation-cancel)
    (define-key map (kbd "C-c C-r") #'contexture-conversation-retry)
    (define-key map (kbd "C-c C-e") #'contexture-conversation-edit)
    (define-key map (kbd "C-c C-b") #'contexture-conversation-branch)
    (define-key map (kbd "C-c C-w") #'contexture-conversation-copy-block)
    (define-key map (kbd "C-c C-i") #'contexture-conversation-insert-block)
    (define-key map (kbd "C-c C-a") #'contexture-conversation-apply)
    (define-key map (kbd "C-c C-n") #'contexture-conversation-next-message)
    (define-key map (kbd "C-c C-p") #'contexture-conversation-previous-message)
    (define-key map (kbd "C-c M-n") #'contexture-conversation-next-block)
    (define-key map (kbd "C-c M-p") #'contexture-conversation-previous-block)
    (define-key map (kbd "C-c C-s") #'contexture-conversation-switch)
    (define-key map (kbd "C-c C-v") #'contexture-conversation-switch-model)
    (define-key map (kbd "C-c C-t") #'contexture-conversation-switch-notes)
    (define-key map (kbd "C-c M-t") #'contexture-conversation-toggle-notes)
    (define-key map (kbd "C-c C-y") #'contexture-conversation-approve)
    (define-key map (kbd "C-c C-d") #'contexture-conversation-preview)
    (define-key map (kbd "C-c C-l") #'contexture-list)
    (define-key map (kbd "C-c C-o") #'contexture-conversation-toggle-markup)
    (define-key map (kbd "C-c M-g") #'contexture-conversation-redraw)
    map)
  "Keymap of `contexture-conversation-mode'.")

(define-derived-mode contexture-conversation-mode nil "Conversation"
  "Major mode for a conversation with a model.
Write at the prompt: \\<contexture-conversation-mode-map>\\[contexture-conversation-send] \
sends it, \\[contexture-conversation-newline] begins a new line,
and `@' with \\[completion-at-point] names files, symbols and items, \
which go with it.
A text that begins with `/' and a name is a command; /help lists them.  If
the text begins with \"@context-helper NAME\", notes of that kind are
taken for this turn.

\\[contexture-conversation-cancel] stops an answer.  \\[contexture-conversation-retry] asks the \
last question again, \\[contexture-conversation-edit] changes the
one at point, and \\[contexture-conversation-branch] branches into a new \
conversation.  \\[contexture-conversation-copy-block]
copies the code at point, by default the last, \\[contexture-conversation-insert-block] \
inserts it elsewhere,
and \\[contexture-conversation-apply] applies it to the code that you asked about.

See Info node `(contexture)Asking'.

\\{contexture-conversation-mode-map}"
  (set-syntax-table text-mode-syntax-table)
  (setq-local font-lock-function #'ignore
              font-lock-ensure-function #'contexture-conversation--draw-all
              fontification-functions (list #'contexture-conversation--draw-seen)
              word-wrap t
              truncate-lines nil
              truncate-partial-width-windows nil
              scroll-conservatively 101
              bidi-paragraph-direction 'left-to-right
              bidi-inhibit-bpa t
              filter-buffer-substring-function #'contexture-conversation--filter-substring
              completion-at-point-functions (list #'contexture-conversation--complete t))
  (contexture--choose-evil-state 'insert)
  (contexture--show-tool-bar '("mail/send" contexture-conversation-send "Send")
                             '("cancel" contexture-conversation-cancel "Stop"
                               :enable (contexture-conversation--busy-p))
                             '("refresh" contexture-conversation-retry "Ask again")
                             '("jump-to" contexture-conversation-apply "Apply")
                             '("open" contexture-conversation-switch "Conversation")
                             '("index" contexture-list "Context"))
  (setq buffer-invisibility-spec '(t)
        mode-line-process '((:eval (contexture-conversation--mode-line-state))
                            (:eval (contexture-conversation--mode-line-count))))
  (when contexture-conversation-hide-markup (add-to-invisibility-spec 'contexture-markup))
  (buffer-enable-undo)
  (contexture-conversation--lay-out)
  (add-hook 'pre-command-hook #'contexture-conversation--before-command nil t)
  (add-hook 'after-change-functions #'contexture-conversation--text-changed nil t)
  (add-hook 'kill-buffer-hook #'contexture-conversation--leave nil t)
  (add-hook 'window-size-change-functions #'contexture-conversation--resized nil t)
  (contexture-mention-mode)
  (setq contexture-mention--for-question t)
  (contexture-picture--set-up)
  ;; Before mentions, which would not complete the name of a template.
  (add-hook 'completion-at-point-functions #'contexture-conversation--complete-directive -90 t)
  (contexture-watch #'contexture-conversation--changed
                    '(session-changed management-failed providers-changed))
  (add-hook 'contexture-connected-hook #'contexture-conversation--connected)
  (add-hook 'contexture-providers-hook #'contexture-conversation--providers-changed)
  (add-hook 'kill-emacs-hook #'contexture-conversation--keep-all))

(contexture-conversation--define-menu contexture-conversation-mode-map)

;;;; Opening

;;;###autoload
(defun contexture-conversation (&optional conversation)
  "Talk with a model in this project's conversation that was used last.
If the project has none yet, start one.  In a buffer without a project,
take the last conversation without a project.  With a prefix argument, ask
for the name CONVERSATION of a conversation, which may be another project's; if
none has that name, start one for this project."
  (interactive
   (list (and current-prefix-arg (contexture-conversation--read-session))))
  (let ((project (contexture-conversation--project-here)))
    (pop-to-buffer (contexture-conversation--buffer conversation))
    (when (< (point) contexture-conversation--input) (goto-char (point-max)))
    (contexture-conversation--tell-project (current-buffer) project)))

(defun contexture-conversation--buffer (&optional session)
  "Return the buffer of the conversation called SESSION; start it if needed.
If SESSION is nil, return this buffer if it is a conversation's, else the
buffer of the last conversation of its project."
  (contexture-conversation--note-used
   (cond (session (contexture-conversation--open (contexture-conversation--make-session session)))
         ((contexture--in-asking-buffer
            (and (derived-mode-p 'contexture-conversation-mode) (current-buffer))))
         (t (contexture-conversation--last-used)))))

(defun contexture-conversation--last-used ()
  "Return the buffer of the last conversation here, opened again if needed.
If there is none, start one."
  (let ((last (contexture-conversation--last-of (contexture-conversation--project-here))))
    (if (and last (equal (plist-get (buffer-local-value 'contexture-conversation--session last) :id)
                         (car (contexture-conversation--used))))
        last
      (contexture-conversation--open (contexture-conversation--usual-session)))))

(defun contexture-conversation--project-here ()
  "Return the root of this buffer's project, or nil.
In a conversation's buffer, that is the project of the conversation."
  (contexture--in-asking-buffer
    (if (derived-mode-p 'contexture-conversation-mode)
        (plist-get contexture-conversation--session :project)
      (contexture--project-root))))

(defun contexture-conversation--project-of (buffer)
  "Return the project of BUFFER's conversation, a root, or nil."
  (plist-get (buffer-local-value 'contexture-conversation--session buffer) :project))

(defun contexture-conversation--last-of (project)
  "Return the buffer of PROJECT's conversation that was used last, or nil.
If PROJECT is nil, return that of the last conversation without a project."
  (cl-find-if (lambda (buffer)
                (and (buffer-live-p buffer)
                     (contexture--same-project-p
                      project (contexture-conversation--project-of buffer))))
              contexture-conversation--recent))

(defun contexture-conversation--usual-session ()
  "Return the conversation of this buffer's project used last, or a new one.
Without a project, return a conversation without one.  Skip
conversations that were imported from agents, unless they were used
here.  The value is an entry of the server."
  (let* ((project (contexture-conversation--project-here))
         (all (cl-remove-if (lambda (session) (and (not project) (plist-get session :project)))
                            (contexture--ask 'list-sessions
                                             (and project (list :project project))))))
    (or (cl-some (lambda (id) (contexture--entry :id id all)) (contexture-conversation--used))
        (cl-find-if-not (lambda (session) (plist-get session :source)) all)
        (contexture-conversation--make-session nil))))

(defun contexture-conversation--belongs-text (buffer project)
  "Return a phrase for the project of BUFFER's conversation, if not PROJECT.
PROJECT is a root or nil."
  (let ((own (contexture-conversation--project-of buffer)))
    (if (contexture--same-project-p own project) ""
      (concat ", which belongs to "
              (if own (contexture--project-label own) "no project")))))

(defun contexture-conversation--tell-project (buffer project)
  "Show a message if BUFFER's conversation does not belong to PROJECT.
PROJECT is a root or nil."
  (let ((text (contexture-conversation--belongs-text buffer project)))
    (unless (string-empty-p text)
      (contexture--message
       "This is conversation %s%s"
       (plist-get (buffer-local-value 'contexture-conversation--session buffer) :session) text))))

(defun contexture-conversation--make-session (name)
  "Return the server's entry for the conversation called NAME.
Start the conversation if needed; if NAME is nil, start a new one."
  (let ((session (contexture--ask
                  'open-session
                  (append (contexture--context-params (contexture--conversation-context))
                          (contexture--plist :name name
                                             :project (contexture-conversation--project-here)
                                             :request-key (contexture--make-request-key))))))
    (when (plist-get session :created-now)
      (contexture-conversations--send-no-memories session))
    session))

(defun contexture-conversation--read-session ()
  "Ask for the name of a conversation, which need not exist; return it or nil.
The default is the last conversation of this buffer's project."
  (let* ((sessions (contexture--ask 'list-sessions nil))
         (names (mapcar (lambda (it) (plist-get it :session)) sessions))
         (project (contexture-conversation--project-here))
         (default (plist-get (cl-find-if (lambda (it)
                                           (contexture--same-project-p
                                            project (plist-get it :project)))
                                         sessions)
                             :session))
         (name (minibuffer-with-setup-hook #'contexture-sets--allow-spaces
                 (completing-read
                  (format-prompt "Conversation" (contexture--visible default))
                  (contexture--table names 'contexture-conversations
                                     (lambda (name)
                                       (contexture-conversation--session-note name sessions)))
                  nil nil nil 'contexture-conversation-names-history default))))
    (and name (not (string-blank-p name)) (contexture--trim name))))

(defun contexture-conversation--session-note (name sessions)
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

(defun contexture-conversation--open (session)
  "Return the buffer of the conversation SESSION; create it if needed.
SESSION is an entry of the server."
  (let* ((session (contexture-conversation--with-project session))
         (id (plist-get session :id))
         (buffer (or (contexture-conversation--buffer-of id)
                     (generate-new-buffer (contexture-conversation--buffer-name
                                           (plist-get session :session))))))
    (with-current-buffer buffer
      (unless (derived-mode-p 'contexture-conversation-mode)
        (when-let* ((folder (contexture--outside-folder (plist-get session :project))))
          (setq default-directory folder))
        (contexture-conversation-mode)
        (setq contexture-conversation--session session
              contexture-context (contexture-conversation--context session))
        (contexture-conversation--bring-back)
        (contexture-conversation--draw-header)
        (contexture-conversation--ask-providers) ; first, so that headings have names
        (contexture-conversation-redraw)
        (contexture-conversation--fetch-settings)
        (contexture-conversation--ask-templates)))
    (contexture-conversation--note-used buffer)))

(defun contexture-conversation--with-project (session)
  "Return SESSION, an entry of the server, with a project only if the user agrees.
What only a recording or a file tells may be any folder.  If the user agrees,
the model works in that folder, and the conversation sends its items."
  (if (not (plist-get session :told)) session
    (let* ((session (copy-sequence session))
           (id (plist-get session :id))
           (folder (contexture--outside-folder (plist-get session :project))))
      (if (not (and folder (contexture--y-or-n-p
                            (contexture--format "%s was recorded in %s.  Let its model work there? "
                                                (plist-get session :session)
                                                (contexture--abbreviate folder)))))
          (plist-put session :project nil)
        (let* ((project (plist-get session :project))
               (layers (unless (or contexture-conversation-own-context
                                   (plist-get session :managers))
                         (contexture--pluck
                          :manager (plist-get (contexture--ask 'open-layers (list :root project))
                                              :layers)))))
          (contexture--ask 'configure-session
                           (contexture--plist :session id :project project :managers layers
                                              :request-key (contexture--make-request-key)))
          (when layers
            (plist-put session :managers (append layers (list (plist-get session :manager)))))
          (plist-put session :told nil))))))

(defun contexture-conversation--context (session)
  "Return the context of the conversation SESSION, an entry of the server.
That is one name, or the list of the names of its layers."
  (let ((own (plist-get session :manager))
        (layers (plist-get session :managers)))
    (when layers
      (puthash own (concat "conversation " (plist-get session :session))
               contexture--labels))
    (or layers own)))

(defun contexture-conversation--buffers ()
  "Return the buffers in `contexture-conversation-mode', which show conversations."
  (cl-remove-if-not (lambda (buffer)
                      (eq (buffer-local-value 'major-mode buffer) 'contexture-conversation-mode))
                    (buffer-list)))

(defun contexture-conversation--buffer-of (id)
  "Return the buffer of the conversation with ID, or nil."
  (cl-find-if (lambda (buffer)
                (equal id (plist-get (buffer-local-value 'contexture-conversation--session buffer)
                                     :id)))
              (contexture-conversation--buffers)))

(defun contexture-conversation--root ()
  "Return the folder to which file names in this conversation are relative.
That is its project's root or, without a project, `default-directory'."
  (or (contexture--outside-folder (plist-get contexture-conversation--session :project))
      (file-name-as-directory (expand-file-name default-directory))))

;;;; Messages from the log

(defun contexture-conversation-redraw (&optional all)
  "Redraw the conversation from the server's data.
The text at the prompt stays.  With a prefix argument, ALL, show all
messages, not only the last `contexture-conversation-shown-messages'.  While a
question is being answered, the messages stay as they are."
  (interactive "P")
  (unless (contexture-conversation--answering-p)
    (contexture-conversation--request
     'get-messages
     (append (list :session (contexture-conversation--session-id))
             (unless all (list :limit contexture-conversation-shown-messages)))
     (lambda (messages)
       (unless (contexture-conversation--answering-p)
         (contexture-conversation--draw-log messages)
         (setq contexture-conversation--loaded t)
         (mapc #'funcall (nreverse (cl-shiftf contexture-conversation--once-loaded nil)))))
     (lambda (problem)
       (contexture-conversation--show-problem problem)
       (setq contexture-conversation--once-loaded nil)
       (when (eq (car contexture-conversation--preparing) 'log)
         (contexture-conversation--give-back (cdr (cl-shiftf contexture-conversation--preparing nil)))))))
  (contexture-conversation--fetch-items)
  (contexture-conversation--fetch-stats))

(defun contexture-conversation--answering-p ()
  "Return non-nil if a turn is being answered or prepared beside this log."
  (and (contexture-conversation--busy-p)
       (not (eq (car contexture-conversation--preparing) 'log))))

(defvar contexture-conversation--called nil
  "Alist from the ids of tool calls to names of tools, while a log is drawn.
The newest come first, since some models reuse ids.")

(defun contexture-conversation--draw-log (messages)
  "Replace everything above the prompt with MESSAGES, from the server."
  (contexture-conversation--changing
    (delete-region (point-min) contexture-conversation--tail))
  (setq contexture-conversation--messages nil)
  (contexture-conversation--note-length (plist-get (car (last messages)) :id))
  (cond ((null messages)
         (contexture-conversation--note (substitute-command-keys
                                         "Write a question and press \\[contexture-conversation-send]. \
@ sends a file with it, /help lists commands, \\[describe-mode] keys.")
                                        nil 'contexture-intro t))
        ((not (member (plist-get (car messages) :id) '(nil "msg-1")))
         (contexture-conversation--note (substitute-command-keys
                                         "Earlier messages are not shown; \
\\[universal-argument] \\[contexture-conversation-redraw] shows them."))))
  (let ((contexture-conversation--called nil))
    (dolist (message messages)
      (contexture-conversation--draw-logged message)
      (when-let* ((key (contexture-conversation--usage-key (plist-get message :id)))
                  (usages (plist-get contexture-conversation--settings :usage))
                  (usage (nth 2 (assoc key usages))))
        (contexture-conversation--note usage))))
  (contexture-conversation--note-no-model)
  (contexture-conversation--draw-context))

(defun contexture-conversation--draw-logged (message)
  "Draw MESSAGE, from the server, as the last one.
A model's text after the use of a tool belongs to the answer before it."
  (let* ((role (plist-get message :role))
         (content (or (plist-get message :content) ""))
         (last (car contexture-conversation--messages))
         (going-on ; after the use of a tool
          (and (eq role :assistant) last
               (> contexture-conversation--tail (point-min))
               (get-text-property (1- contexture-conversation--tail) 'contexture-used)
               (eq (contexture-conversation--message-role last) :assistant))))
    (cond ((and (eq role :tool) last)
           (contexture-conversation--draw-logged-result
            (cdr (assoc (plist-get message :tool-call-id) contexture-conversation--called))
            content))
          (going-on
           (setf (contexture-conversation--message-id last) (plist-get message :id))
           ;; Its model is known by the last message of the answer.
           (when-let* ((model (contexture-conversation--model-of (plist-get message :id))))
             (contexture-conversation--retitle last model))
           (unless (string-empty-p content)
             (contexture-conversation--add-text last content)))
          (t (setq last (contexture-conversation--add-message
                         role content
                         (or (contexture-conversation--model-of (plist-get message :id)) "Model")
                         :id (plist-get message :id)))))
    (dolist (call (plist-get message :tool-calls))
      (push (cons (plist-get call :id) (contexture-conversation--tool-name call))
            contexture-conversation--called)
      (contexture-conversation--draw-tool-call call))))

(defun contexture-conversation--model-of (id)
  "Return the name of the model that gave the answer with ID, or nil if unknown.
It need not be the model that is in use now."
  (nth 1 (assoc (contexture-conversation--usage-key id)
                (plist-get contexture-conversation--settings :usage))))

(defun contexture-conversation--draw-logged-result (tool content)
  "Draw a line for CONTENT, the result of TOOL, with CONTENT as details.
The server's own tools return JSON on success, else plain text; JSON is
shown as \"done\".  TOOL is nil if the call itself is not drawn."
  (contexture-conversation--draw-fold
   (contexture-conversation--one-line
    (format "%s: %s" (or tool "a tool")
            (if (and (or (null tool) (assoc tool contexture--server-tools))
                     (string-match-p "\\`[ \t\n]*[[{]" content))
                "done" content))
    (- (contexture-conversation--width) 4))
   (and (> (length content) 40) content)
   'contexture-used t))

(defun contexture-conversation-next-message (&optional count)
  "Go to the next message, or to that COUNT messages forward.
After the last one, go to the end of the buffer."
  (interactive "p")
  (let ((step (if (< (or count 1) 0) -1 1)))
    (dotimes (_ (abs (or count 1)))
      (let ((starts
             (mapcar (lambda (it)
                       (marker-position (contexture-conversation--message-from it)))
                     contexture-conversation--messages)))
        (goto-char (or (if (> step 0)
                           (cl-find-if (lambda (it) (> it (point)))
                                       (reverse starts))
                         (cl-find-if (lambda (it) (< it (point))) starts))
                       (if (> step 0) (point-max)
                         (user-error "There is no earlier message"))))))))

(defun contexture-conversation-previous-message (&optional count)
  "Go back to the beginning of a message, or to that COUNT messages back."
  (interactive "p")
  (contexture-conversation-next-message (- (or count 1))))

(defun contexture-conversation--filter-substring (beg end &optional delete)
  "Return the original text from BEG to END, and delete it if DELETE.
This is a value of `filter-buffer-substring-function'."
  (prog1 (contexture-markdown--text (min beg end) (max beg end))
    (when delete (delete-region beg end))))

(defun contexture-conversation-toggle-markup ()
  "Show or hide the markup of answers."
  (interactive)
  (if (memq 'contexture-markup buffer-invisibility-spec)
      (remove-from-invisibility-spec 'contexture-markup)
    (add-to-invisibility-spec 'contexture-markup))
  (contexture-conversation--changing
    (goto-char (point-min))
    (while (re-search-forward (concat "^" contexture-markdown--rule)
                              contexture-conversation--tail t)
      (forward-line)
      (while (and (looking-at-p contexture-markdown--row) (zerop (forward-line))))
      (save-excursion (contexture-markdown--align-table (point)))))
  (force-window-update (current-buffer)))

;;;; Notifications from the server

(defun contexture-conversation--leave ()
  "Save this buffer's draft, and cancel its turn; the buffer is being killed."
  (contexture-count--unfollow (current-buffer))
  (contexture-conversation--drop-mentions contexture-conversation--mentioned)
  (contexture-conversation--keep-draft)
  (dolist (timer (list contexture-conversation--idle-timer contexture-conversation--items-timer))
    (when timer (cancel-timer timer)))
  (when-let* ((turn contexture-conversation--turn))
    (contexture-conversation--end-turn turn)
    (when (contexture-conversation--turn-id turn)
      (contexture--cancel (contexture-conversation--turn-connection turn)
                          (contexture-conversation--turn-id turn))))
  (unless (remq (current-buffer) (contexture-conversation--buffers))
    (contexture-unwatch #'contexture-conversation--changed)
    (remove-hook 'contexture-connected-hook #'contexture-conversation--connected)
    (remove-hook 'contexture-providers-hook #'contexture-conversation--providers-changed)
    (remove-hook 'kill-emacs-hook #'contexture-conversation--keep-all)))

(defun contexture-conversation--keep-all ()
  "Save the drafts of all conversations."
  (dolist (buffer (contexture-conversation--buffers))
    (with-current-buffer buffer (contexture-conversation--keep-draft))))

(defun contexture-conversation--connected ()
  "Update all conversations from the server that was just connected."
  (setq contexture-conversation--unknown nil)
  (dolist (buffer (contexture-conversation--buffers))
    (with-current-buffer buffer
      (contexture-conversation--fetch-items)
      (contexture-conversation--fetch-settings)
      (contexture-conversation--fetch-stats))))

(defun contexture-conversation--providers-changed ()
  "Fetch the providers again in all conversations, and count again."
  (dolist (buffer (contexture-conversation--buffers))
    (with-current-buffer buffer
      (contexture-conversation--ask-providers)
      (contexture-conversation--count))))

(defun contexture-conversation--changed (method params)
  "Handle the notification METHOD with PARAMS in the conversations it concerns."
  (when (eq method 'providers-changed)
    (contexture-conversation--providers-changed))
  (dolist (buffer (and (memq method '(context-changed session-changed management-failed))
                       (contexture-conversation--buffers)))
    (with-current-buffer buffer
      (cond ((eq method 'context-changed)
             (when (contexture--of-context-p (plist-get params :manager)
                                             (contexture-conversation--managers))
               (unless (plist-get params :own)
                 (contexture-conversation--tell-of-others
                  (contexture--name (plist-get params :method))
                  (concat "the items of " (contexture--label (plist-get params :manager)))))
               (contexture-conversation--items-changed)))
            ((not (if-let* ((id (plist-get params :session-id)))
                      (equal id (contexture-conversation--session-id))
                    (equal (plist-get params :session)
                           (plist-get contexture-conversation--session :session)))))
            ((eq method 'management-failed)
             (unless (contexture-conversation--busy-p)
               (contexture-conversation--note
                (contexture-conversation--failed-managing-text params) 'contexture-conversation-error)))
            (t (contexture-conversation--session-changed params))))))

(defconst contexture-conversation--told-of-others
  '(("chat" . "asked in %s; the answer is shown")
    ("add-message" . "added a message to %s")
    ("rollback" . "went back to an earlier turn of %s")
    ("remove-items" . "removed some of %s")
    ("undo" . "undid a change of %s")
    ("redo" . "redid a change of %s")
    ("restore" . "undid several changes of %s")
    ("clear-context" . "removed all of %s"))
  "Alist from methods that others call to phrases about a conversation or context.")

(defun contexture-conversation--tell-of-others (method what)
  "Say in one line that another client called METHOD, a name, on WHAT.
Say nothing if WHAT is shown nowhere."
  (when-let* (((get-buffer-window nil 'visible))
              (phrase (cdr (assoc method contexture-conversation--told-of-others))))
    (contexture--message "Another client %s" (contexture--format phrase what))))

(defun contexture-conversation--session-changed (params)
  "Show a change of this conversation that the notification PARAMS reports.
Changes made in this buffer are shown already."
  (let* ((method (contexture--name (plist-get params :method)))
         (before contexture-conversation--log-length)
         (now (or (plist-get params :messages) before)))
    (pcase method
      ("rename-session" (contexture-conversation--renamed (plist-get params :session)))
      ("configure-session" (contexture-conversation--fetch-settings)))
    (setq contexture-conversation--log-length now)
    (when (and (pcase method
                 ("rollback"
                  (or (= contexture-conversation--own-rollbacks 0)
                      (ignore (cl-decf contexture-conversation--own-rollbacks))))
                 ((or "undo" "redo" "restore") t)
                 ((or "add-message" "chat")
                  (and (= contexture-conversation--asking 0) (> now before))))
               (not (contexture-conversation--busy-p)))
      (unless (memq (intern method) contexture--own-session-calls)
        (contexture-conversation--tell-of-others
         method (concat "conversation " (plist-get contexture-conversation--session :session))))
      (contexture-conversation-redraw))))

(defun contexture-conversation--fetch-items (&optional then)
  "Fetch the items of this conversation's context, and show them; then call THEN."
  (let ((then (or then #'ignore)))
    (contexture-conversation--request
     'list-items (append (contexture--context-params (contexture-conversation--managers))
                         '(:brief t))
     (lambda (items)
       (setq contexture-conversation--items items)
       (unwind-protect (contexture-conversation--draw-context)
         (funcall then)))
     (lambda (_) (funcall then)))))

(defconst contexture-conversation--items-pause 0.5
  "Minimum number of seconds between an answer with the items and the next call.
Others may change them much more often.")

(defun contexture-conversation--items-changed ()
  "Fetch the items of this conversation soon, since they have changed.
If they are being fetched, or were just before, do so after a pause."
  (if contexture-conversation--items-timer
      (setq contexture-conversation--items-again t)
    (setq contexture-conversation--items-timer
          (run-at-time 0.05 nil #'contexture-conversation--fetch-items-once
                       (current-buffer)))))

(defun contexture-conversation--fetch-items-once (buffer)
  "Fetch the items of the conversation of BUFFER, and pause after the answer."
  (contexture--with-live-buffer buffer
    (setq contexture-conversation--items-again nil)
    (contexture-conversation--fetch-items
     (lambda ()
       (contexture--with-live-buffer buffer
         (setq contexture-conversation--items-timer
               (run-at-time contexture-conversation--items-pause nil
                            #'contexture-conversation--items-paused buffer)))))))

(defun contexture-conversation--items-paused (buffer)
  "Fetch the items of the conversation of BUFFER if they changed in the pause."
  (contexture--with-live-buffer buffer
    (setq contexture-conversation--items-timer nil)
    (when contexture-conversation--items-again
      (contexture-conversation--items-changed))))

(defun contexture-conversation--resized (window)
  "Redraw the line above the prompt in the buffer of WINDOW for its width.
In a new frame, Emacs calls this in another buffer."
  (with-current-buffer (window-buffer window)
    (contexture-conversation--draw-context)))

;;;; Choosing

(defun contexture-conversation-switch (conversation)
  "Show the conversation called CONVERSATION in this window.
Start it if there is none of that name."
  (interactive (list (contexture-conversation--read-session)))
  (let ((project (contexture-conversation--project-here)))
    (switch-to-buffer (contexture-conversation--open (contexture-conversation--make-session conversation)))
    (contexture-conversation--tell-project (current-buffer) project)))

;;; Ask about code from its buffer

;; Commands for buffers with code that ask a model to explain, document,
;; review, test, fix or rewrite the region or the definition around point.
;; Templates of the server make the questions; you can replace them with
;; your own of the same names.  The answer appears in the conversation; if it
;; has new code, `contexture-conversation-apply' there proposes it as a change of the
;; code, as `contexture-rewrite' does while the answer comes in.

;;;; The code to ask about

(defvar-local contexture-conversation-code--waiting nil
  "Questions to ask when no other is being answered, each as (TEXT . ORIGIN).")

(defun contexture-conversation-code--bounds ()
  "Return the bounds of the region, or else of the definition around point.
They are a pair.  Signal an error if there is no text."
  (let ((bounds (cond ((use-region-p) (cons (region-beginning) (region-end)))
                      ((contexture--defun-bounds))
                      (t (user-error "Mark a region, or put point in a definition")))))
    (when (string-blank-p (buffer-substring-no-properties (car bounds) (cdr bounds)))
      (user-error "There is no text to ask about"))
    bounds))

(defun contexture-conversation-code--about (function)
  "Call FUNCTION with what to ask about here, once its text is at hand.
That is a list of subjects, as `contexture-point-subjects' returns them, or the
bounds of code in this buffer, a pair."
  (contexture-point-call
   (lambda ()
     (let ((subjects (contexture-point-subjects)))
       (if subjects (contexture-point-with subjects function)
         (funcall function (contexture-conversation-code--bounds)))))))

(defun contexture-conversation-code--take (about session &optional numbered)
  "Return (TEXT . ORIGIN) for ABOUT, subjects or bounds in this buffer.
TEXT is the code between fences, below a line that names its source.
SESSION is the buffer of the conversation in which to ask about it.
If NUMBERED, the lines of the code begin with their numbers."
  (if (consp (car about))
      (let ((texts (mapcar (lambda (subject)
                             (if-let* ((file (plist-get subject :file)))
                                 (contexture-conversation-code--named file)
                               (contexture-conversation-code--fenced
                                (plist-get subject :params) session numbered)))
                           about)))
        (cons (mapconcat #'car texts "\n\n")
              (contexture-conversation--make-origin
               :name (if (cdr texts) (contexture--count (length texts) "place")
                       (cdar texts)))))
    (let* ((beg (car about)) (end (cdr about))
           (text (contexture-conversation-code--fenced
                  (contexture--capture beg end :region) session numbered)))
      (cons (car text)
            (contexture-conversation--make-origin
             :buffer (contexture--base-buffer)
             :beg (copy-marker beg) :end (copy-marker end t)
             :file (buffer-file-name (contexture--base-buffer))
             :text (buffer-substring-no-properties beg end) :name (cdr text))))))

(defun contexture-conversation-code--named (file)
  "Return (TEXT . PLACE) for FILE, a picture or PDF, which TEXT mentions."
  (let ((name (contexture-mention--quote (contexture--abbreviate file))))
    (unless name (contexture--user-error "No mention can name %s" (contexture--abbreviate file)))
    (cons (concat "@" name) (contexture--last-name file))))

(defun contexture-conversation-code--fenced (params session numbered)
  "Return (TEXT . PLACE) for the text of PARAMS, parameters of `add-item'.
TEXT has it between fences, below a line that names PLACE, its source.
SESSION is the buffer of the conversation in which to ask about it.
If NUMBERED, the lines of the text begin with their numbers."
  (let* ((metadata (plist-get params :metadata))
         (code (if numbered (contexture-point-numbered params)
                 (plist-get params :content)))
         (place (contexture-conversation-code--place metadata session))
         (fence (contexture-conversation-code--fence code)))
    (cons (format "From %s:\n%s%s\n%s%s%s"
                  place fence (contexture-conversation-code--language
                               (plist-get metadata :language))
                  code (if (string-suffix-p "\n" code) "" "\n") fence)
          place)))

(defun contexture-conversation-code--place (metadata session)
  "Return a phrase for the place of a text with METADATA.
SESSION is a conversation's buffer: a path is relative to the text's project
only if that is also the conversation's."
  (contexture--description
   (if (contexture--same-project-p (plist-get metadata :project)
                                   (contexture-conversation--project-of session))
       metadata
     (plist-put (copy-sequence metadata) :project nil))))

(defun contexture-conversation-code--fence (code)
  "Return a fence of backquotes that is longer than any backquotes in CODE."
  (let ((longest 2) (start 0))
    (while (string-match "`+" code start)
      (setq longest (max longest (- (match-end 0) (match-beginning 0)))
            start (match-end 0)))
    (make-string (1+ longest) ?`)))

(defun contexture-conversation-code--language (mode)
  "Return the language of MODE, the name of a major mode, for a fence, or \"\"."
  (let ((name (replace-regexp-in-string "\\(-ts\\)?-mode\\'" "" (or mode ""))))
    (pcase name
      ((or "fundamental" "text") "")
      ((or "emacs-lisp" "lisp-interaction") "elisp")
      ("c++" "cpp")
      (_ name))))

(defun contexture-conversation-code--ask (template about session &rest fields)
  "Ask the question that TEMPLATE makes of ABOUT, subjects or bounds.
The remarks of a review are shown at their lines.
SESSION is the name of the conversation to ask in, or nil for a new one.
FIELDS are further fields of TEMPLATE, keywords and values."
  (let* ((buffer (contexture-conversation-code--idle (contexture-conversation-code--clean session)))
         (review (equal template "review"))
         (taken (contexture-conversation-code--take about buffer review))
         (language (contexture-conversation-code--language (symbol-name major-mode)))
         (fields (apply #'contexture--plist
                        :code (car taken)
                        :language (and (not (string-empty-p language)) language)
                        fields)))
    (setf (contexture-conversation--origin-name (cdr taken))
          (or (plist-get fields :question)
              (format "%s %s" (contexture--capitalized (string-replace "-" " " template))
                      (contexture-conversation--origin-name (cdr taken)))))
    (when review
      (setf (contexture-conversation--origin-watch (cdr taken))
            (apply-partially #'contexture-remark--watch (contexture-remark--places about))))
    (with-current-buffer buffer
      (contexture-conversation--wanting
       template
       (lambda ()
         (contexture-conversation--request
          'list-templates
          (append (contexture--plist
                   :name template
                   :project (plist-get contexture-conversation--session :project))
                  (list :values fields))
          (lambda (resolved)
            (contexture-conversation-code--submit
             (string-trim-left (contexture--trim-right (or (plist-get resolved :text) ""))) (cdr taken)))))))
    (setq deactivate-mark t)
    (contexture-conversation-code--show buffer)))

(defun contexture-conversation-code--clean (&optional session)
  "Return the buffer of the conversation called SESSION or, if nil, of a new one.
A conversation without questions counts as new.  If
`contexture-conversation-continue' is non-nil, it is the one that
`contexture-conversation' shows instead."
  (let ((last (contexture-conversation--last-of (contexture-conversation--project-here))))
    (cond ((or session contexture-conversation-continue) (contexture-conversation--buffer session))
          ((and last (contexture-conversation--unused-p last)) last)
          (t (contexture-conversation--open (contexture-conversation--make-session nil))))))

(defun contexture-conversation--unused-p (buffer)
  "Return non-nil if BUFFER's conversation has no messages and no draft."
  (with-current-buffer buffer
    (and (eql 0 (plist-get contexture-conversation--session :messages))
         (= 0 contexture-conversation--log-length)
         (null contexture-conversation--messages)
         (null contexture-conversation-code--waiting)
         (not (contexture-conversation--busy-p))
         (string-blank-p (contexture-conversation--text)))))

(defun contexture-conversation-code--idle (buffer)
  "Return BUFFER, of a conversation.
Signal an error if a question is still being answered there."
  (with-current-buffer buffer (contexture-conversation--check-idle))
  buffer)

(defun contexture-conversation-code--read-session (prefix)
  "Ask for the name of the conversation to use if PREFIX is non-nil.
PREFIX is a prefix argument; without it, return nil."
  (and prefix (contexture-conversation--read-session)))

(defun contexture-conversation-code--tell (buffer project)
  "Say in which conversation, that of BUFFER, something was just asked.
Name the items and the earlier messages that go along, and its project if
that is not PROJECT, from where it was asked.  The items are counted as they
are now, with edits that the server did not know yet."
  (with-current-buffer buffer
    (let* ((whose (contexture-conversation--sources-label))
           (before (if contexture-conversation--loaded
                       (max 0 (1- (length contexture-conversation--messages)))
                     (or (plist-get contexture-conversation--session :messages) 0)))
           (where (concat (plist-get contexture-conversation--session :session)
                          (contexture-conversation--belongs-text buffer project)))
           (history (if (= before 0) ""
                      (format " and %s before" (contexture--count before "message")))))
      (contexture-request-async
       'list-items (append (contexture--context-params contexture-context) '(:brief t))
       :success
       (lambda (items)
         (contexture--message
          "Asked in conversation %s, with %s%s%s" where
          (if items
              (concat (contexture--size (length items) (contexture--tokens-to-send items))
                      (if (string-empty-p whose) "" (concat " of " whose)))
            "no items")
          history
          ;; This message takes the place of that one.
          (if-let* ((told (and (buffer-live-p buffer)
                               (buffer-local-value 'contexture-conversation--mentions-told
                                                   buffer))))
              (concat "; " told)
            "")))))))

(defun contexture-conversation-code--show (buffer)
  "Show and select BUFFER, of a conversation; something was just asked there."
  (let ((project (contexture-conversation--project-here)))
    (pop-to-buffer buffer)
    (goto-char (point-max))
    (contexture-conversation-code--tell buffer project)))

(defun contexture-conversation-code--submit (text origin)
  "Ask TEXT, with code from ORIGIN, in this conversation.
If another question is being answered, put TEXT at the prompt instead."
  (if (contexture-conversation--busy-p)
      (contexture-conversation--give-back text)
    (contexture-conversation--ask text origin)))

;;;; Commands

;;;###autoload
(defun contexture-explain-code (&optional question conversation)
  "Have a model explain the region or the definition around point.
Where `contexture-add-dwim' would add something else, such as a hunk or a
commit, have it explain that.
With a prefix argument, ask QUESTION about it instead; with two, also
choose the conversation CONVERSATION to go on in.  Otherwise see
`contexture-conversation-continue'."
  (interactive
   (list (and current-prefix-arg (contexture-mention--ask "Question about this code: "
                                                            'contexture-question-history))
         (contexture-conversation-code--read-session (equal current-prefix-arg '(16)))))
  (contexture-conversation-code--about
   (lambda (about)
     (contexture-conversation-code--ask
      "explain" about conversation
      :question (and question (not (string-blank-p question)) question)))))

;;;###autoload
(defun contexture-document-defun (&optional conversation)
  "Have a model document the region or the definition around point.
`contexture-conversation-apply' in the conversation then proposes the change.
With a prefix argument, choose the conversation CONVERSATION to go on in;
otherwise see `contexture-conversation-continue'."
  (interactive (list (contexture-conversation-code--read-session current-prefix-arg)))
  (contexture-conversation-code--ask "document" (contexture-conversation-code--bounds) conversation))

;;;###autoload
(defun contexture-review-code (&optional conversation)
  "Have a model review the region or the definition around point.
Where `contexture-add-dwim' would add something else, such as a hunk or a
commit, have it review that.
With a prefix argument, choose the conversation CONVERSATION to go on in;
otherwise see `contexture-conversation-continue'."
  (interactive (list (contexture-conversation-code--read-session current-prefix-arg)))
  (contexture-conversation-code--about
   (lambda (about) (contexture-conversation-code--ask "review" about conversation))))

;;;###autoload
(defun contexture-write-tests (&optional conversation)
  "Have a model write tests for the region or the definition around point.
With a prefix argument, choose the conversation CONVERSATION to go on in;
otherwise see `contexture-conversation-continue'."
  (interactive (list (contexture-conversation-code--read-session current-prefix-arg)))
  (contexture-conversation-code--ask "write-tests" (contexture-conversation-code--bounds) conversation))

;;;###autoload
(defun contexture-fix-error (error &optional conversation)
  "Have a model fix the region or the definition around point.
ERROR says what is wrong with the code.  Interactively, ERROR is Flymake's
diagnostics at point, or what you type.  In a compilation or a list of
diagnostics, the model fixes the code that the error at point names; among
differences, the code that the hunk at point changed.  With a prefix argument,
choose the conversation CONVERSATION to go on in; otherwise see
`contexture-conversation-continue'."
  (interactive (list nil (contexture-conversation-code--read-session current-prefix-arg)))
  (contexture-point-call (lambda () (contexture-conversation-code--fix error conversation))))

(defun contexture-conversation-code--fix (error conversation)
  "Ask in CONVERSATION for a fix of ERROR, as `contexture-fix-error' does."
  (pcase (contexture-point-subjects)
    (`(,subject . ,_)
     (pcase-let ((`(,buffer ,beg ,end)
                  (or (contexture-point-code subject)
                      (user-error "What is at point names no existing file")))
                 (params (plist-get subject :params)))
       (unless error
         (setq error (if (eq (plist-get params :type) :error)
                         (contexture--trim-right (plist-get params :content))
                       (contexture-conversation-code--read-error))))
       (with-current-buffer buffer
         (contexture--widened
           (contexture-conversation-code--ask "fix-error" (cons beg end) conversation
                                              :error error)))))
    (_ (contexture-conversation-code--ask
        "fix-error" (contexture-conversation-code--bounds) conversation
        :error (or error (contexture-conversation-code--error-here))))))

(defun contexture-conversation-code--error-here ()
  "Return Flymake's diagnostics at point as text, or else what the user types."
  (let ((diagnostics (and (bound-and-true-p flymake-mode)
                          (contexture-sources--diagnostics nil))))
    (if diagnostics
        (contexture--trim-right
         (mapconcat #'contexture-sources--diagnostic-text diagnostics ""))
      (contexture-conversation-code--read-error))))

(defun contexture-conversation-code--read-error ()
  "Ask what is wrong with the code, and return the answer."
  (let ((text (contexture-mention--ask "What is wrong? " 'contexture-question-history)))
    (if (string-blank-p text) (user-error "Say what is wrong with the code")
      text)))

;;;###autoload
(defun contexture-send-region (question &optional conversation)
  "Ask QUESTION about the region or the definition around point.
If QUESTION is empty, put the text at the prompt of the conversation, where
you can write more.  With a prefix argument, choose the conversation
CONVERSATION, by default the last one of this project."
  (interactive (list (contexture-mention--ask "Ask about this code: " 'contexture-question-history)
                     (contexture-conversation-code--read-session current-prefix-arg)))
  (let ((bounds (contexture-conversation-code--bounds)))
    (if (string-blank-p question)
        (contexture-conversation-code--put-at-prompt bounds conversation)
      (contexture-conversation-code--ask-plainly question bounds conversation))))

(defun contexture-conversation-code--put-at-prompt (bounds session)
  "Put the code between BOUNDS at the prompt of a conversation, and show that.
SESSION is the conversation's name, or nil for the usual one."
  (let* ((buffer (contexture-conversation--buffer session))
         (taken (contexture-conversation-code--take bounds buffer))
         (project (contexture-conversation--project-here)))
    (with-current-buffer buffer
      (contexture-conversation--set-text
       (concat (contexture-conversation--text) (car taken) "\n\n")))
    (pop-to-buffer buffer)
    (goto-char (point-max))
    (contexture-conversation--tell-project buffer project)))

(defun contexture-conversation-code--ask-plainly (question bounds session)
  "Ask QUESTION about the code between BOUNDS, without a template.
SESSION is the name of the conversation to ask in, or nil for the usual one."
  (let* ((buffer (contexture-conversation-code--idle (contexture-conversation--buffer session)))
         (taken (contexture-conversation-code--take bounds buffer)))
    (setf (contexture-conversation--origin-name (cdr taken)) question)
    (setq deactivate-mark t)
    (with-current-buffer buffer
      (contexture-conversation--ask (concat (contexture--trim question) "\n\n" (car taken)) (cdr taken)))
    (contexture-conversation-code--show buffer)))

;;;; Rewriting

;;;###autoload
(defun contexture-rewrite (instruction &optional conversation)
  "Have a model rewrite the region or the definition around point.
INSTRUCTION says how.  The new code is shown at that place while it comes
in; \\<contexture-review-map>there, \\[contexture-review-accept] accepts it \
and \\[contexture-review-reject] rejects it.  You need not
wait to ask for further changes.  With a prefix argument, choose the
conversation CONVERSATION to go on in; otherwise see
`contexture-conversation-continue'."
  (interactive (progn (contexture-review--check)
                      (contexture-conversation-code--bounds)
                      (list (contexture-mention--ask "Rewrite this code how? "
                                                    'contexture-rewrite-history)
                            (contexture-conversation-code--read-session current-prefix-arg))))
  (when (string-blank-p instruction)
    (user-error "Say how to rewrite the code"))
  (contexture-review--check)
  (let* ((bounds (contexture-conversation-code--bounds))
         (buffer (contexture-conversation-code--clean conversation))
         (taken (contexture-conversation-code--take bounds buffer)))
    (setf (contexture-conversation--origin-name (cdr taken)) instruction)
    (contexture-conversation-code--rewrite
     buffer
     (format "Rewrite the code below: %s\nChange nothing else, and answer with all of \
the rewritten code, and nothing but it, in one fenced block.\n\n%s"
             (contexture-conversation-code--sentence instruction) (car taken))
     (cdr taken))
    (contexture-conversation-code--tell buffer (contexture-conversation--project-here))))

;;;###autoload
(defalias 'contexture-rewrite-region #'contexture-rewrite)

(defun contexture-conversation-code--rewrite (session text origin)
  "Ask TEXT in SESSION, a buffer, and propose the answer in place of ORIGIN."
  (with-current-buffer (contexture-conversation--origin-buffer origin)
    (let ((review (contexture-review--begin
                   (contexture-conversation--origin-beg origin) (contexture-conversation--origin-end origin)
                   :again (apply-partially #'contexture-conversation-code--again session origin)
                   :cancel (apply-partially #'contexture-conversation-code--stop session origin))))
      (setf (contexture-conversation--origin-watch origin)
            (apply-partially #'contexture-conversation-code--watch session origin review))))
  (setq deactivate-mark t)
  (with-current-buffer session
    (setq contexture-conversation-code--waiting
          (append contexture-conversation-code--waiting (list (cons text origin))))
    (add-hook 'contexture-conversation-turn-ended-hook #'contexture-conversation-code--next-soon nil t)
    (contexture-conversation-code--next session)))

(defun contexture-conversation-code--next-soon ()
  "Ask the next waiting question of this conversation as soon as Emacs is idle."
  (contexture--later (apply-partially #'contexture-conversation-code--next (current-buffer))))

(defun contexture-conversation-code--next (session)
  "Ask the next waiting question of SESSION, a conversation's buffer.
Do nothing if a question is still being answered there."
  (contexture--with-live-buffer session
    (unless (contexture-conversation--busy-p)
      (when-let* ((next (pop contexture-conversation-code--waiting)))
        (contexture-conversation--ask (car next) (cdr next))))))

(defun contexture-conversation-code--again (session origin remark)
  "Ask in SESSION, a buffer, to change the code of ORIGIN again.
REMARK says what should be different from the change that was proposed."
  (unless (buffer-live-p session)
    (user-error "The conversation's buffer was killed; ask for a new change"))
  (let ((bounds (contexture-conversation--locate origin)))
    (with-current-buffer (contexture-conversation--origin-buffer origin)
      (contexture-review--drop-in (car bounds) (cdr bounds))
      (let ((taken (contexture-conversation-code--take bounds session)))
        (contexture-conversation-code--rewrite
         session
         (format "Once more: %s\nAnswer with all of the rewritten code, and nothing but it, \
in one fenced block.\n\n%s"
                 (contexture-conversation-code--sentence remark) (car taken))
         (cdr taken))))))

(defun contexture-conversation-code--stop (session origin)
  "Stop asking about ORIGIN in SESSION, a buffer.
Withdraw the question if it waits; else cancel the answer."
  (contexture--with-live-buffer session
    (if (cl-find origin contexture-conversation-code--waiting :key #'cdr)
        (setq contexture-conversation-code--waiting
              (cl-remove origin contexture-conversation-code--waiting :key #'cdr))
      (contexture-conversation-cancel))))

(defun contexture-conversation-code--watch (session origin review answer state)
  "Show the code of ANSWER in REVIEW, a change that is proposed for ORIGIN.
STATE is `more', `done' or `failed'; SESSION is the conversation's buffer."
  (unless (contexture-review--ended-p review)
    (let ((code (contexture-conversation-code--last-block answer)))
      (cond ((and code (eq state 'more))
             (contexture-review--show review code))
            ((eq state 'more))
            ((and code (eq state 'done))
             (when (contexture-review--show
                    review (contexture-conversation--fit code (contexture-conversation--origin-text origin)) t)
               (contexture-review--say-where review)))
            (t
             (contexture-review--end review)
             (display-buffer session)
             (contexture--message
              (if (eq state 'done) "The answer has no code; it is in %s"
                "No new code arrived; %s says why")
              (buffer-name session)))))))

(defun contexture-conversation-code--last-block (answer)
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

(defun contexture-conversation-code--sentence (text)
  "Return TEXT, trimmed, with a full stop unless it ends a sentence."
  (let ((text (contexture--trim text)))
    (if (string-match-p "[.!?]\\'" text) text (concat text "."))))

;;;###autoload
(defun contexture-insert-last-response (&optional code-only)
  "Insert at point the last answer in this project's last conversation.
That is the conversation that `contexture-conversation' shows; its buffer must
be there.  With a prefix argument, CODE-ONLY, insert only the last block of
code of an answer."
  (interactive "*P")
  (let* ((project (contexture-conversation--project-here))
         (text (with-current-buffer
                   (or (contexture-conversation--last-of project)
                       (user-error "No conversation %s has a buffer; M-x contexture-conversation opens one"
                                   (if project
                                       (concat "of " (contexture--project-label project))
                                     "without a project")))
                (if code-only
                    (contexture-markdown--block-text
                     (or (contexture-conversation--last-block)
                         (user-error "No answer in the conversation has a block of code")))
                  (contexture-conversation--message-text
                   (or (cl-find-if
                        (lambda (it)
                          (and (eq (contexture-conversation--message-role it) :assistant)
                               (contexture-conversation--message-text it)))
                        contexture-conversation--messages)
                       (user-error "The conversation has no answer yet")))))))
    (push-mark)
    (insert text)))

(provide 'contexture-conversation)
;;; contexture-conversation.el ends here
