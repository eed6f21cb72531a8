;;; contexture-repl-settings.el --- Who answers, and from what  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What is chosen for a session: the model, the template that manages its
;; history, and the tools that models may use.  The server keeps the last
;; two; the buffer shows a choice at once, tells the server, and goes by
;; what that says is in effect.  So nothing here waits, also while an
;; answer comes in.

;;; Code:

(require 'contexture-repl-turn)
(require 'easymenu)
(eval-when-compile (require 'subr-x))

(declare-function contexture-trust--ask "contexture-trust" (project templates then))

(defvar contexture-repl-model-history nil
  "Models that were chosen.")

(defvar-local contexture-repl--templates nil
  "Names of templates, as last heard.")

(defvar-local contexture-repl--untrusted nil
  "Alist from a name to the file of a template that does not count.
They are the project's own, as last heard.")

(defvar-local contexture-repl--models nil
  "Alist from the name of a provider to its models.
That is `asked' before they are known.")

(defconst contexture-repl--patience 0.5
  "How many seconds completion waits for providers to name their models.")

(defvar-local contexture-repl--configuring 0
  "How many calls that set or ask for settings have no answer yet.")

(defconst contexture-repl--questions
  '("document" "explain" "fix-error" "review" "write-tests")
  "Templates that make questions and manage no history.")

;;;; What the server keeps

(defun contexture-repl--configure (&rest settings)
  "Have the server keep SETTINGS, a plist, for this session."
  (contexture-repl--configure-then settings #'ignore #'ignore))

(defun contexture-repl--configure-then (settings done refused)
  "Have the server keep SETTINGS, a plist, for this session.
Then call DONE, or REFUSED, before what is in effect is asked for."
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
  "Ask what is in effect for this session, and show it."
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
  "Have VALUE in effect for KEY of what is chosen for this session."
  (setq contexture-repl--settings (plist-put contexture-repl--settings key value)))

(defun contexture-repl--choose (key value)
  "Set KEY of what is chosen for this session to VALUE, and keep that."
  (contexture-repl--take key value)
  (contexture-repl--draw-header)
  (contexture-repl--keep-draft))

;;;; Managing

(defun contexture-repl-switch-template (template)
  "Have TEMPLATE manage the history from now on, or none if it is \"off\".
What a model gets is then a summary of what was said, made as TEMPLATE
says, and the last turns; all that was said is kept.  An answer that is
coming in is not concerned, nor waited for."
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
  "Have TEMPLATE manage the history from now on."
  (let ((before (copy-sequence contexture-repl--settings)))
    (contexture-repl--choose :template template)
    (contexture-repl--choose :manage t)
    (contexture-repl--configure-then
     (list :manage t :template template)
     (lambda () (contexture--message "%s manages the history" template))
     (lambda () (contexture-repl--keep-template before template)))))

(defun contexture-repl--template-names ()
  "Return the names of templates that can manage, once they are trusted."
  (delete-dups (append contexture-repl--templates
                       (cl-remove-if (lambda (name)
                                       (member name contexture-repl--questions))
                                     (mapcar #'car contexture-repl--untrusted)))))

(defun contexture-repl--wanting (template then)
  "Call THEN in this buffer, where TEMPLATE is wanted.
If it is one of the project's own that do not count yet, ask about them
before, once."
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
  "Choose what BEFORE, older settings, say of templates instead of REFUSED.
Leave what was chosen since."
  (when (equal (plist-get contexture-repl--settings :template) refused)
    (contexture-repl--choose :template (plist-get before :template))
    (contexture-repl--choose :manage (plist-get before :manage))))

(defun contexture-repl--other-template ()
  "Return what one would switch to: \"off\", or a template if none manages."
  (if (plist-get contexture-repl--settings :manage) "off"
    (or (plist-get contexture-repl--settings :template)
        (car (member "freeform-chat" contexture-repl--templates))
        (car contexture-repl--templates)
        "freeform-chat")))

(defun contexture-repl-toggle-managing ()
  "Have the history managed by the template chosen last, or not any more."
  (interactive)
  (contexture-repl-switch-template (contexture-repl--other-template)))

(defun contexture-repl-choose-template (event)
  "Choose in a menu, where EVENT clicked, what manages the history."
  (interactive "e")
  (with-current-buffer (window-buffer (posn-window (event-start event)))
    (popup-menu (easy-menu-create-menu "Template" (contexture-repl--template-menu))
                event)))

(defun contexture-repl--ask-templates ()
  "Ask for the names of the templates that can manage a history."
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
  "Whether TEMPLATE, as listed, is of a project that is not trusted."
  (and (plist-member template :trusted) (not (plist-get template :trusted))))

(defun contexture-repl--trust-changed (project)
  "Ask anew which templates there are in conversations of PROJECT."
  (dolist (buffer (contexture-repl--buffers))
    (with-current-buffer buffer
      (let ((own (plist-get contexture-repl--session :project)))
        (when (and own (file-equal-p own project))
          (contexture-repl--ask-templates))))))

(defun contexture-repl--management-failed (params)
  "Show that managing failed as PARAMS tell, unless the turn's end will."
  (unless (contexture-repl--busy-p)
    (contexture-repl--note
     (contexture-repl--failed-managing-text params) 'contexture-repl-error)))

(defun contexture-repl--failed-managing-text (management)
  "Return words for the MANAGEMENT that failed."
  (concat "Not managed, the whole history was sent: "
          (let ((step (plist-get management :step)))
            (if step (format "%s: " (contexture--name step)) ""))
          (or (plist-get management :reason) "no reason was given")
          (let ((template (plist-get management :template)))
            (if template (format " (template %s)" template) ""))))

(defun contexture-repl--management-text (result)
  "Return words for what became of the managing of RESULT's turn, or nil."
  (let* ((management (plist-get result :management))
         (template (plist-get management :template)))
    (pcase (contexture--name (plist-get management :status))
      ("managed" (concat (format "Managed with %s" template)
                         (if (equal "project" (contexture--name
                                               (plist-get management :source)))
                             " of the project" "")
                         (contexture-repl--tokens-change management)
                         (if (plist-get management :cached)
                             "; the summary was there already" "")))
      ("below-threshold"
       (concat (format "Not managed with %s yet: the history%s is below its threshold"
                       template
                       (let ((tokens (plist-get management :tokens-before)))
                         (if tokens (format ", %s," (contexture--count tokens "token"))
                           "")))))
      ("disabled" (format "Not managed: %s"
                          (or (plist-get management :reason)
                              (format "%s looks at no runs" template))))
      ("failed" (contexture-repl--failed-managing-text management)))))

(defun contexture-repl--tokens-change (management)
  "Return words for how many tokens MANAGEMENT made of how many, or nothing."
  (let ((before (plist-get management :tokens-before))
        (after (plist-get management :tokens-after)))
    (if (and before after) (format ": %d → %s" before (contexture--count after "token"))
      "")))

;;;; A template for one question

(defconst contexture-repl--directive "@context-helper "
  "What a question begins with that has a template of its own.")

(defun contexture-repl--directive-p (text)
  "Whether TEXT, a question, names a template for itself."
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
  "Ask MODEL from now on, of PROVIDER.
MODEL may be the name of a provider, and then stands for its model.
Interactively, providers complete, and the models that they say they
have; a prefix argument asks for the provider, too.  An empty name
stands for what the server is set to."
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
    (contexture--message "Questions go to %s" (or (contexture-repl--model) "the server's model"))))

(declare-function contexture-repl--fetch-stats "contexture-repl" ())

(defun contexture-repl--provider-with (model)
  "Return the name of the provider that says it has MODEL, or nil.
The one that is chosen already comes first."
  (let ((having (cl-loop for (provider . models) in contexture-repl--models
                         when (and (listp models) (member model models))
                         collect provider)))
    (or (car (member (plist-get contexture-repl--settings :provider) having))
        (car having))))

(defun contexture-repl--read-model ()
  "Ask for a model or the name of a provider."
  (contexture-repl--ask-models)
  (let ((completion-extra-properties
         (list :annotation-function #'contexture-repl--annotate-model)))
    (completing-read (format-prompt "Model" (contexture--visible (contexture-repl--model)))
                     (contexture-repl--model-table)
                     nil nil nil 'contexture-repl-model-history
                     (contexture-repl--model))))

(defun contexture-repl--model-table ()
  "Return a completion table of providers and their models, as far as known.
It looks again each time, since models come in while one chooses."
  (let ((buffer (current-buffer)))
    (lambda (string predicate action)
      (complete-with-action
       action
       (and (buffer-live-p buffer)
            (with-current-buffer buffer
              (mapcar #'contexture--visible-candidate
                      (delete-dups
                       (append (mapcar (lambda (it) (plist-get it :name))
                                       (contexture-repl--known-providers))
                               (cl-loop for (_ . models) in contexture-repl--models
                                        when (listp models) append models))))))
       string predicate))))

(defun contexture-repl--annotate-model (name)
  "Return what completion shows behind NAME, of a provider or a model."
  (let ((buffer (if (minibufferp) (window-buffer (minibuffer-selected-window))
                  (current-buffer))))
    (with-current-buffer buffer
      (if-let ((provider (contexture-repl--provider name)))
          (contexture--format "  %s" (plist-get provider :model))
        (let ((provider (contexture-repl--provider-with name)))
          (if provider (contexture--format "  of %s" provider) ""))))))

(defun contexture-repl--ask-models ()
  "Ask each provider which models it has, unless that is known.
Those that say nothing keep nobody waiting."
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
  "Ask for models, and wait a little for them, unless the user types."
  (contexture-repl--ask-models)
  (let ((end (+ (float-time) contexture-repl--patience)))
    (while (and (rassq 'asked contexture-repl--models)
                (< (float-time) end) (not (input-pending-p)))
      (accept-process-output nil 0.02))))

(defun contexture-repl--ask-providers ()
  "Ask which models can be talked to; if none, say how to set one up."
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
  "If no model is set up, say how that is done."
  (when (eq contexture-repl--providers 'none)
    (contexture-repl--forget-no-model)
    (contexture-repl--note "No model is set up yet: M-x contexture-configure-provider \
does that, or a [[providers]] table in the server's configuration file. The rest works \
without."
                           nil 'contexture-intro t 'contexture-no-model t)))

(defun contexture-repl--forget-no-model ()
  "Take off the screen that no model is set up."
  (let ((at (text-property-any (point-min) contexture-repl--tail 'contexture-no-model t)))
    (when at
      (contexture-repl--changing
        (delete-region at (next-single-property-change at 'contexture-no-model nil
                                                       contexture-repl--tail))))))

;;;; The menu

(defun contexture-repl--template-menu (&rest _)
  "Return the entries of the menu that chooses a template."
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
  "Give MAP the menu of a conversation."
  (easy-menu-define nil map "Menu of a conversation with a model."
    '("Chat"
      ["Send" contexture-repl-send]
      ["Stop the answer" contexture-repl-cancel :active (contexture-repl--busy-p)]
      ["Ask again" contexture-repl-retry]
      ["Change the question" contexture-repl-edit]
      ["Go on from here elsewhere" contexture-repl-branch]
      "--"
      ["Have the history managed" contexture-repl-toggle-managing
       :style toggle :selected (plist-get contexture-repl--settings :manage)]
      ("Template" :filter contexture-repl--template-menu)
      ["Managed views" (contexture-session-views (contexture-repl--session-id))]
      "--"
      ["Offer tools to the model"
       (contexture-repl-tools (if (plist-get contexture-repl--tool-settings :tools) 'off 'on))
       :style toggle :selected (plist-get contexture-repl--tool-settings :tools)]
      ["Decide what the model asks" contexture-repl-approve
       :active contexture-repl--approvals]
      "--"
      ["Model..." contexture-repl-switch-model]
      ["Session..." contexture-repl-switch-session]
      ["Show what would be sent" contexture-repl-dry-run]
      ["Items of the context" contexture-list])))

(provide 'contexture-repl-settings)
;;; contexture-repl-settings.el ends here
