;;; contexture-repl-settings.el --- Choose models, notes and tools  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The settings of a session: the model, the template that takes notes on
;; its history, and the tools that models may use.  The server stores the
;; last two.  The buffer shows a choice at once, sends it to the server, and
;; then shows the settings that the server reports.  So nothing here waits,
;; even while an answer comes in.

;;; Code:

(require 'contexture-repl-turn)
(require 'easymenu)
(eval-when-compile (require 'subr-x))

(declare-function contexture-trust--ask "contexture-trust" (project templates then))

(defvar contexture-repl-model-history nil
  "History of chosen models.")

(defvar-local contexture-repl--templates nil
  "Names of templates, as last reported.")

(defvar-local contexture-repl--untrusted nil
  "Alist from the name of each untrusted template to its file.
These are the project's own templates, as last reported.")

(defvar-local contexture-repl--models nil
  "Alist from the name of a provider to its models, or `asked'.
The value is `asked' until the models are known.")

(defconst contexture-repl--patience 0.5
  "Maximum number of seconds that completion waits for lists of models.")

(defvar-local contexture-repl--configuring 0
  "Number of unanswered calls that set or fetch settings.")

(defconst contexture-repl--questions
  '("document" "explain" "fix-error" "review" "write-tests")
  "Templates that make questions rather than notes.")

;;;; What the server keeps

(defun contexture-repl--configure (&rest settings)
  "Store SETTINGS, a plist, for this session on the server."
  (contexture-repl--configure-then settings #'ignore #'ignore))

(defun contexture-repl--configure-then (settings done refused)
  "Store SETTINGS, a plist, for this session on the server.
Then call DONE, or REFUSED, before fetching the settings in effect."
  (cl-incf contexture-repl--configuring)
  (contexture-repl--request
   'configure-session
   (append (list :session (contexture-repl--session-id)) settings
           (and settings (list :request-key (contexture--make-request-key))))
   (lambda (result)
     (contexture-repl--configured result)
     (funcall done))
   (lambda (problem)
     (cl-decf contexture-repl--configuring)
     (when settings
       (contexture-repl--show-problem problem)
       (funcall refused)
       (contexture-repl--fetch-settings)))))

(defun contexture-repl--fetch-settings ()
  "Fetch the settings in effect for this session, and show them."
  (contexture-repl--configure))

(defun contexture-repl--configured (result)
  "Show RESULT, the settings in effect, unless others were chosen since."
  (when (= 0 (cl-decf contexture-repl--configuring))
    (when (plist-member result :manage)
      (contexture-repl--take :manage (and (plist-get result :manage) t))
      (when (plist-get result :template)
        (contexture-repl--take :template
                               (contexture--name (plist-get result :template)))))
    (when (plist-member result :tools)
      (setq contexture-repl--tool-settings
            (list :tools (plist-get result :tools)
                  :allowed-tools (plist-get result :allowed-tools))))
    (contexture-repl--draw-header)))

(defun contexture-repl--take (key value)
  "Set KEY of this session's settings to VALUE, in this buffer only."
  (setq contexture-repl--settings (plist-put contexture-repl--settings key value)))

(defun contexture-repl--choose (key value)
  "Set KEY of this session's settings to VALUE, and save that."
  (contexture-repl--take key value)
  (contexture-repl--draw-header)
  (contexture-repl--keep-draft))

;;;; Notes

(defun contexture-repl-switch-template (template)
  "Have TEMPLATE take notes on the history, or none if it is \"off\".
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
             (message "The whole history is sent"))
    (contexture-repl--wanting
     template (lambda () (contexture-repl--have-managed template)))))

(defun contexture-repl--have-managed (template)
  "Have TEMPLATE take notes on the history from now on."
  (let ((before (copy-sequence contexture-repl--settings)))
    (contexture-repl--choose :template template)
    (contexture-repl--choose :manage t)
    (contexture-repl--configure-then
     (list :manage t :template template)
     (lambda () (contexture--message "The template %s takes notes on the history" template))
     (lambda () (contexture-repl--keep-template before template)))))

(defun contexture-repl--template-names ()
  "Return the names of templates that can take notes, once trusted."
  (delete-dups (append contexture-repl--templates
                       (cl-remove-if (lambda (name)
                                       (member name contexture-repl--questions))
                                     (mapcar #'car contexture-repl--untrusted)))))

(defun contexture-repl--wanting (template then)
  "Call THEN in this buffer once TEMPLATE may be used.
If TEMPLATE belongs to the project, and the project is not trusted, ask
once whether to trust the project before that."
  (if (not (assoc template contexture-repl--untrusted)) (funcall then)
    (require 'contexture-trust)
    (let ((buffer (current-buffer)))
      (contexture-trust--ask
       (directory-file-name
        (expand-file-name (plist-get contexture-repl--session :project)))
       (delq nil (mapcar #'cdr contexture-repl--untrusted))
       (lambda (trusted)
         (when (buffer-live-p buffer)
           (with-current-buffer buffer
             (when trusted (contexture-repl--ask-templates))
             (funcall then))))))))

(defun contexture-repl--keep-template (before refused)
  "Restore the template of BEFORE, older settings, in place of REFUSED.
Do nothing if another template was chosen since."
  (when (equal (plist-get contexture-repl--settings :template) refused)
    (contexture-repl--choose :template (plist-get before :template))
    (contexture-repl--choose :manage (plist-get before :manage))))

(defun contexture-repl--other-template ()
  "Return \"off\" if notes are on, or the template to turn them on with."
  (if (plist-get contexture-repl--settings :manage) "off"
    (or (plist-get contexture-repl--settings :template)
        (car (member "freeform-chat" contexture-repl--templates))
        (car contexture-repl--templates)
        "freeform-chat")))

(defun contexture-repl-toggle-managing ()
  "Turn notes off, or on with the template chosen last."
  (interactive)
  (contexture-repl-switch-template (contexture-repl--other-template)))

(defun contexture-repl-choose-template (event)
  "Choose the template that takes notes in a menu at EVENT."
  (interactive "e")
  (with-current-buffer (window-buffer (posn-window (event-start event)))
    (popup-menu (easy-menu-create-menu "Template" (contexture-repl--template-menu))
                event)))

(defun contexture-repl--ask-templates ()
  "Fetch the names of the templates that can take notes."
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
  "Return non-nil if TEMPLATE, as listed, belongs to an untrusted project."
  (and (plist-member template :trusted) (not (plist-get template :trusted))))

(defun contexture-repl--trust-changed (project)
  "Fetch the templates again in the conversations of PROJECT."
  (dolist (buffer (contexture-repl--buffers))
    (with-current-buffer buffer
      (let ((own (plist-get contexture-repl--session :project)))
        (when (and own (file-equal-p own project))
          (contexture-repl--ask-templates))))))

(defun contexture-repl--management-failed (params)
  "Show that taking notes failed, from PARAMS, unless the turn's end will."
  (unless (contexture-repl--busy-p)
    (contexture-repl--note
     (contexture-repl--failed-managing-text params) 'contexture-repl-error)))

(defun contexture-repl--failed-managing-text (management)
  "Return a phrase for the notes that failed, from MANAGEMENT."
  (concat "No notes were taken, so the whole history was sent: "
          (let ((step (plist-get management :step)))
            (if step (format "%s: " (contexture--name step)) ""))
          (or (plist-get management :reason) "no reason was given")
          (let ((template (plist-get management :template)))
            (if template (format " (template %s)" template) ""))))

(defun contexture-repl--management-text (result)
  "Return a phrase for the notes of RESULT's turn, or nil."
  (let* ((management (plist-get result :management))
         (template (plist-get management :template)))
    (pcase (contexture--name (plist-get management :status))
      ("managed" (concat (format "Notes with %s" template)
                         (if (equal "project" (contexture--name
                                               (plist-get management :source)))
                             " of the project" "")
                         (contexture-repl--tokens-change management)
                         (if (plist-get management :cached)
                             "; the notes were there already" "")))
      ("below-threshold"
       (concat (format "No notes with %s yet: the history%s is below its threshold"
                       template
                       (let ((tokens (plist-get management :tokens-before)))
                         (if tokens (format ", %s," (contexture--count tokens "token"))
                           "")))))
      ("disabled" (format "No notes: %s"
                          (or (plist-get management :reason)
                              (format "the template %s takes notes on no turns" template))))
      ("failed" (contexture-repl--failed-managing-text management)))))

(defun contexture-repl--tokens-change (management)
  "Return a phrase for the tokens before and after, from MANAGEMENT, or \"\"."
  (let ((before (plist-get management :tokens-before))
        (after (plist-get management :tokens-after)))
    (if (and before after) (format ": %d → %s" before (contexture--count after "token"))
      "")))

;;;; A template for one question

(defconst contexture-repl--directive "@context-helper "
  "Prefix of a question that names its own template.")

(defun contexture-repl--directive-p (text)
  "Return non-nil if TEXT, a question, names its own template."
  (string-match-p "\\`[ \t]*@context-helper[ \t]+[^ \t\n]" text))

(defun contexture-repl--complete-directive ()
  "Complete a first line that names a template for one question.
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
  "Use MODEL of PROVIDER from now on.
MODEL may also be the name of a provider, which means its model.
Interactively, providers and their models complete; a prefix argument
asks for the provider, too.  An empty name means the server's default."
  (interactive
   (list (contexture-repl--read-model)
         (and current-prefix-arg (read-string "Provider: "))))
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
    (contexture--message "Using %s from now on" (or (contexture-repl--model) "the server's model"))))

(declare-function contexture-repl--fetch-stats "contexture-repl" (&optional after-turn))

(defun contexture-repl--provider-with (model)
  "Return the name of a provider that lists MODEL, or nil.
Prefer the one in use."
  (let ((having (cl-loop for (provider . models) in contexture-repl--models
                         when (and (listp models) (member model models))
                         collect provider)))
    (or (car (member (plist-get contexture-repl--settings :provider) having))
        (car having))))

(defun contexture-repl--read-model ()
  "Ask for a model or the name of a provider."
  (contexture-repl--ask-models)
  (completing-read (format-prompt "Model" (contexture--visible (contexture-repl--model)))
                   (contexture-repl--model-table)
                   nil nil nil 'contexture-repl-model-history (contexture-repl--model)))

(defun contexture-repl--model-table ()
  "Return a completion table of providers and their known models.
It is computed each time, since models come in while the user chooses."
  (let ((buffer (current-buffer)))
    (contexture--table
     (lambda ()
       (and (buffer-live-p buffer)
            (with-current-buffer buffer (contexture-repl--model-names))))
     'contexture-model #'contexture-repl--annotate-model)))

(defun contexture-repl--model-names ()
  "Return the names of providers and of their models that are known by now."
  (delete-dups
   (append (mapcar (lambda (it) (plist-get it :name)) (contexture-repl--known-providers))
           (cl-loop for (_ . models) in contexture-repl--models
                    when (listp models) append models))))

(defun contexture-repl--annotate-model (name)
  "Return the annotation of NAME, a provider or a model."
  (let ((buffer (if (minibufferp) (window-buffer (minibuffer-selected-window))
                  (current-buffer))))
    (with-current-buffer buffer
      (if-let* ((provider (contexture-repl--provider name)))
          (contexture--format "  %s" (plist-get provider :model))
        (let ((provider (contexture-repl--provider-with name)))
          (if provider (contexture--format "  of %s" provider) ""))))))

(defun contexture-repl--ask-models ()
  "Ask each provider for its models, unless they are known.
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

(defun contexture-repl--await-models ()
  "Ask for models, and wait for them briefly, until the user types."
  (contexture-repl--ask-models)
  (let ((end (+ (float-time) contexture-repl--patience)))
    (while (and (rassq 'asked contexture-repl--models)
                (< (float-time) end) (not (input-pending-p)))
      (accept-process-output nil 0.02))))

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
  "Say how to set up a model, if there is none."
  (when (eq contexture-repl--providers 'none)
    (contexture-repl--forget-no-model)
    (contexture-repl--note "No model is set up yet: use M-x contexture-configure-provider, \
or add a [[providers]] table to the server's configuration file. Everything else works \
without one."
                           nil 'contexture-intro t 'contexture-no-model t)))

(defun contexture-repl--forget-no-model ()
  "Remove the remark that no model is set up."
  (let ((at (text-property-any (point-min) contexture-repl--tail 'contexture-no-model t)))
    (when at
      (contexture-repl--changing
        (delete-region at (next-single-property-change at 'contexture-no-model nil
                                                       contexture-repl--tail))))))

;;;; The menu

(defun contexture-repl--template-menu (&rest _)
  "Return the entries of the menu of templates."
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

(defvar contexture-repl-mode-map)

(defun contexture-repl--define-menu (map)
  "Define the menu of a conversation in MAP."
  (easy-menu-define nil map "Menu of a conversation with a model."
    '("Chat"
      ["Send" contexture-repl-send]
      ["Stop the answer" contexture-repl-cancel :active (contexture-repl--busy-p)]
      ["Ask again" contexture-repl-retry]
      ["Change the question" contexture-repl-edit]
      ["Branch into a new session" contexture-repl-branch]
      "--"
      ["Take notes on the history" contexture-repl-toggle-managing
       :style toggle :selected (plist-get contexture-repl--settings :manage)]
      ("Template" :filter contexture-repl--template-menu)
      ["Notes" (contexture-session-views (contexture-repl--session-id))]
      "--"
      ["Offer tools to the model"
       (contexture-repl-tools (if (plist-get contexture-repl--tool-settings :tools) 'off 'on))
       :style toggle :selected (plist-get contexture-repl--tool-settings :tools)]
      ["Decide what the model asks for" contexture-repl-approve
       :active contexture-repl--approvals]
      "--"
      ["Model..." contexture-repl-switch-model]
      ["Session..." contexture-repl-switch-session]
      ["Show what would be sent" contexture-repl-dry-run]
      ["Items of the context" contexture-list])))

(provide 'contexture-repl-settings)
;;; contexture-repl-settings.el ends here
