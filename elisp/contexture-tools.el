;;; contexture-tools.el --- Tools of Emacs for models  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A tool is a function of Emacs that models may call.
;; `contexture-define-tool' defines one; it is off until `contexture-tools'
;; names a place where it is on.  The first part of this file
;; tells the server which tools are on, calls them when a model does, and
;; sends back what they return.  The server asks before a model calls a
;; tool that changes something.
;;
;; A tool that reads is interrupted when the user types, and called again
;; soon after: it never keeps Emacs from its user.
;;
;; The other parts have the tools that Emacs brings: those that read,
;; those that change, and those in the Lisp image of SLIME or SLY.

;;; Code:

(require 'ansi-color)
(require 'cl-lib)
(require 'contexture-code)
(require 'contexture-rpc)
(require 'json)
(eval-when-compile (require 'subr-x))

(declare-function compilation--ensure-parse "compile" (limit))
(declare-function compilation-buffer-p "compile" (buffer))
(declare-function compilation-start "compile" t t)
(declare-function compile-goto-error "compile" t)
(declare-function contexture-lisp--ask "contexture-lisp" (client slot &rest arguments))
(declare-function contexture-lisp--client-close-hook "contexture-lisp" t t)
(declare-function contexture-lisp--client-prefix "contexture-lisp" t t)
(declare-function contexture-lisp--clients "contexture-lisp" ())
(declare-function contexture-lisp--connection "contexture-lisp" (client))
(declare-function contexture-lisp--implementation "contexture-lisp" (client connection))
(declare-function contexture-sources--error-metadata "contexture-sources" ())
(declare-function contexture-sources--error-params "contexture-sources"
                  (position &optional metadata))
(declare-function contexture-sources--error-place "contexture-sources" (position))
(declare-function contexture-sources--message-here "contexture-sources" ())
(declare-function contexture-sources--params "contexture-sources" t t)
(declare-function flycheck-error-format-message-and-id "ext:flycheck" (err &optional include-id))
(declare-function flycheck-error-level "ext:flycheck" t t)
(declare-function flycheck-error-line "ext:flycheck" t t)
(declare-function flymake-diagnostic-beg "flymake" t t)
(declare-function flymake-diagnostic-text "flymake" t t)
(declare-function flymake-diagnostic-type "flymake" t t)
(declare-function flymake-diagnostics "flymake" (&optional beg end))
(declare-function help-function-arglist "help" (def &optional preserve-names))
(declare-function help-split-fundoc "help" (docstring def &optional section))
(declare-function imenu--subalist-p "imenu" (item))
(declare-function xref-backend-definitions "xref" (backend identifier))
(declare-function xref-backend-identifier-at-point "xref" (backend))
(declare-function xref-backend-references "xref" (backend identifier))
(declare-function xref-find-backend "xref" ())
(declare-function xref-item-location "xref" t t)
(declare-function xref-item-summary "xref" t t)
(declare-function xref-location-group "xref" (location))
(declare-function xref-location-line "xref" (location))
(defvar compilation-disable-input)
(defvar compilation-exit-message-function)
(defvar compilation-filter-hook)
(defvar compilation-finish-functions)
(defvar compile-command)
(defvar contexture--own-call)
(defvar contexture-conversation--session)
(defvar eldoc-documentation-functions)
(defvar flycheck-current-errors)
(defvar imenu-create-index-function)
(defvar imenu-extract-index-name-function)
(defvar imenu-generic-expression)
(defvar imenu-generic-skip-comments-and-strings)
(defvar imenu-prev-index-position-function)

;;; Tools, and calls of them

(cl-defstruct (contexture-tools--tool (:constructor contexture-tools--make-tool)
                                      (:copier nil))
  "A tool for models; see `contexture-define-tool'."
  name function arguments effect description touches seconds async)

(cl-defstruct (contexture-tools--call (:constructor contexture-tools--make-call)
                                      (:copier nil))
  "A call of TOOL with the arguments VALUES.
NUMBER is what the server calls it.  PROJECT is the folder of the project of
the conversation or agent that makes it, or nil.  AGENT is the name of that
agent, or nil if the call is made in a conversation.  TOUCHES is what the
user was told that it can affect.  TIMER, if non-nil, will run it.  CANCEL, a function or nil, ends it while it runs, or withdraws the
question whether it may run."
  number tool values project agent touches timer cancel)

(defvar contexture-tool-project nil
  "Folder of the project of the conversation or agent that calls a tool.
It is nil while no tool runs, and if there is no project.")

(defconst contexture-tools--longest-result 65536
  "Maximum number of characters of a result.
The server shows a model at most as many bytes.")

(defconst contexture-tools--pause 0.2
  "Number of seconds until a tool that the user's input interrupted is run again.")

(defvar contexture-tools--defined nil
  "The tools that are defined, the last defined first.")

(defvar contexture-tools--calls (make-hash-table)
  "Hash table from the number of each call without a result to the call.")

(defvar contexture-tools--told-touches nil
  "Alist from names of tools to what they touch, as the server has it.
Users are asked about calls in these words.")

(defvar contexture-tools--timer nil
  "Timer that will tell the server which tools are on, or nil.")

;;;; Defining

;;;###autoload
(cl-defun contexture-define-tool (name function arguments effect
                                       &key description touches (seconds 30) async)
  "Define a tool with NAME, a string, by which models can call FUNCTION.
NAME has ASCII letters, digits and underscores.  ARGUMENTS describes the
arguments of FUNCTION, in order: each is (NAME DESCRIPTION . PLIST).  The
plist has `:type', which is `string' (the default), `integer' or
`boolean', and `:optional'.  An optional argument that the model leaves
out is nil.

EFFECT is `:reads', `:changes' or `:proposes'.  A tool that changes
something needs the user's approval for each call, unless it is allowed
by name.  One that reads needs none, and is called again if the user's
input interrupts it, so it must not change anything.  One that proposes
asks the user itself, and changes nothing before that.

FUNCTION returns the result, a string, or signals an error, which the
model is told.  If ASYNC is non-nil, FUNCTION has one more argument, the
first: a function for it to call with the result, or with nil and a string
that says what went wrong.  FUNCTION then returns at once, with a function
that ends the work, or nil.

DESCRIPTION tells models what the tool does; it defaults to FUNCTION's
documentation.  TOUCHES is a phrase for what a call can affect, which the
user sees when asked for approval, or a function that returns one.  SECONDS
limits the time of a call.

While FUNCTION runs, `contexture-tool-project' is the folder of the
project.  Models cannot call the tool before `contexture-tools' names it."
  (declare (indent 1))
  (unless (memq effect '(:reads :changes :proposes))
    (error "The effect of a tool must be `:reads', `:changes' or `:proposes', not %S" effect))
  (setq contexture-tools--defined
        (cons (contexture-tools--make-tool
               :name name :function function :arguments arguments :effect effect
               :description (or description (documentation function) name)
               :touches touches :seconds seconds :async async)
              (cl-remove name contexture-tools--defined
                         :key #'contexture-tools--tool-name :test #'equal)))
  (contexture-tools--changed)
  name)

(defun contexture-tools--named (name)
  "Return the tool called NAME, or nil."
  (cl-find name contexture-tools--defined
           :key #'contexture-tools--tool-name :test #'equal))

;;;; Turning on and off

(defun contexture-tools--complete (&optional tool)
  "Define the tools for a Lisp image if SLIME or SLY is loaded.
Also do so if TOOL, a name, is one of them."
  (when (and (or (featurep 'slime) (featurep 'sly)
                 (and (stringp tool) (string-prefix-p "lisp_" tool)))
             (not (contexture-tools--named "lisp_look")))
    (contexture-tools-lisp--define)))

(defun contexture-tools--places (tool)
  "Return the places where TOOL is on, in the form of `contexture-tools'."
  (cl-loop for (name place) in contexture-tools
           when (if (eq name t) (eq (contexture-tools--tool-effect tool) :reads)
                  (equal name (contexture-tools--tool-name tool)))
           collect place))

(defun contexture-tools--names ()
  "Return the names of the tools that are on anywhere."
  (mapcar #'contexture-tools--tool-name
          (cl-remove-if-not #'contexture-tools--places
                            (reverse contexture-tools--defined))))

;;;###autoload
(defun contexture-tools-on (tool place)
  "Let models call TOOL in PLACE, until Emacs ends.
TOOL is a name, or t for all tools that only read.  PLACE is as in
`contexture-tools'; customize that to keep the choice for good."
  (interactive
   (progn
     (contexture-tools--complete)
     (let ((tool (completing-read
                  (format-prompt "Tool that models may call" "all that read")
                  (cons "all that read" (mapcar #'contexture-tools--tool-name
                                                contexture-tools--defined))
                  nil t nil nil "all that read")))
       (list (or (equal tool "all that read") tool) (contexture-tools--read-place)))))
  (contexture-tools--complete tool)     ; an init file comes before the client
  (unless (or (eq tool t) (contexture-tools--named tool))
    (user-error "There is no tool %s" tool))
  (cl-pushnew (list tool place) contexture-tools :test #'equal)
  (contexture-tools--changed)
  (contexture--message "Models may call %s %s" (if (eq tool t) "all tools that read" tool)
                       (contexture-tools--place-text place))
  (contexture-tools--tell-if-elsewhere place))

(defun contexture-tools--tell-if-elsewhere (place)
  "Say so if PLACE is a project, and not that of the conversation here.
Otherwise nobody would say why its model does not call the tool."
  (when (and (eq (car-safe place) 'project) (contexture-running-p))
    (let ((tell (lambda (session)
                  (let ((project (contexture--outside-folder (plist-get session :project))))
                    (when (and (plist-get session :id)
                               (not (and project (file-equal-p project (cdr place)))))
                      (contexture--message
                       "Models may call it %s; the conversation %s %s, and is not offered it"
                       (contexture-tools--place-text place)
                       (contexture--visible (format "%s" (plist-get session :session)))
                       (if project (concat "is about " (contexture--abbreviate project))
                         "has no project")))))))
      (if-let* ((session (bound-and-true-p contexture-conversation--session)))
          (funcall tell session)
        (contexture-request-async 'list-sessions '(:current t)
                                  :success (lambda (sessions) (funcall tell (car sessions)))
                                  :error #'ignore)))))

;;;###autoload
(defun contexture-tools-off (&optional entry)
  "Remove ENTRY, which lets models call tools, from `contexture-tools'.
If ENTRY is nil, remove all entries.  This lasts until Emacs ends."
  (interactive
   (let ((choices (cl-loop for entry in contexture-tools
                           collect (cons (contexture-tools--entry-text entry) entry))))
     (unless choices
       (user-error "There is nothing to turn off: models may call none of Emacs's tools"))
     (list (cdr (assoc (completing-read "Turn off: " (cons "all" choices) nil t
                                        nil nil "all")
                       choices)))))
  (setq contexture-tools (and entry (remove entry contexture-tools)))
  (contexture-tools--changed)
  (contexture--message "Models may now call %s"
                       (if contexture-tools
                           (mapconcat #'contexture-tools--entry-text contexture-tools "; ")
                         "none of Emacs's tools")))

(defun contexture-tools--entry-text (entry)
  "Return a phrase for ENTRY of `contexture-tools'."
  (format "%s %s" (if (eq (car entry) t) "all that read" (car entry))
          (contexture-tools--place-text (cadr entry))))

(defun contexture-tools--place-text (place)
  "Return a phrase for PLACE, which is as in `contexture-tools'."
  (pcase place
    (`(conversation . ,id) (format "in the conversation %s" id))
    (`(project . ,folder) (format "in the project %s" (contexture--abbreviate folder)))
    (`(agents . ,folder)
     (format "as other agents in the project %s" (contexture--abbreviate folder)))
    ('agents "as other agents in all projects")
    (_ "everywhere")))

(defun contexture-tools--read-place ()
  "Ask for a place where tools are on; return it as `contexture-tools' has it."
  (pcase (completing-read (format-prompt "Where" "this conversation")
                          '("this conversation" "this project" "everywhere"
                            "other agents in this project" "other agents in all projects")
                          nil t nil nil "this conversation")
    ("this conversation"
     (cons 'conversation
           (or (plist-get (bound-and-true-p contexture-conversation--session) :id)
               (plist-get (car (contexture-request 'list-sessions '(:current t))) :id)
               (user-error "No conversation is open; M-x contexture-conversation opens one"))))
    ("this project" (cons 'project (contexture-tools--root)))
    ("other agents in this project" (cons 'agents (contexture-tools--root)))
    ("other agents in all projects" 'agents)
    (_ t)))

(defun contexture-tools--root ()
  "Return the folder of this buffer's project, or signal an error."
  (or (contexture--project-root) (user-error "This buffer is not in a project")))

;;;; Telling the server

(defun contexture-tools--changed ()
  "Tell the server soon which tools are on, if one is connected."
  (unless (or contexture-tools--timer (not (contexture-running-p)))
    (setq contexture-tools--timer
          (contexture--later
           (lambda ()
             (setq contexture-tools--timer nil)
             (when (contexture-running-p)
               (contexture-tools--tell contexture--connection)))))))

(defun contexture-tools--connected (connection)
  "Tell the server of CONNECTION, just reached, which tools are on.
End the calls that an earlier server made."
  (setq contexture-tools--told-touches nil)
  (contexture-tools--drop-all)
  (contexture-tools--tell connection))

(defun contexture-tools--drop-all ()
  "End all calls, since Emacs has left the server that made them."
  (mapc #'contexture-tools--drop (hash-table-values contexture-tools--calls)))

(defun contexture-tools--tell (connection)
  "Tell the server of CONNECTION which tools are on."
  (contexture-tools--complete)
  (dolist (hook '(slime-connected-hook sly-connected-hook))
    (add-hook hook #'contexture-tools--changed))
  (if contexture-tools
      (contexture-watch #'contexture-tools--told)
    (contexture-unwatch #'contexture-tools--told))
  (add-hook 'contexture-disconnected-hook #'contexture-tools--drop-all)
  (let ((contexture--own-call t)
        (tools (cl-loop for tool in (reverse contexture-tools--defined)
                        for places = (contexture-tools--places tool)
                        when places
                        collect (contexture-tools--params tool places))))
    (contexture--call
     connection 'register-tools (list :tools tools)
     ;; What the server called before knew of the earlier ones.
     (lambda (_)
       (setq contexture-tools--told-touches
             (cl-loop for tool in tools
                      collect (cons (plist-get tool :name) (plist-get tool :touches)))))
     (apply-partially #'contexture--later #'contexture-show-error))))

(defun contexture-tools--params (tool places)
  "Return the description of TOOL, which is on in PLACES, for the server."
  (list :name (contexture-tools--tool-name tool)
        :description (contexture-tools--tool-description tool)
        :schema (contexture-tools--schema tool)
        ;; For a tool that proposes, Emacs asks the user instead of the server.
        :effect (if (eq (contexture-tools--tool-effect tool) :changes) :changes :reads)
        :touches (contexture-tools--touches tool)
        :seconds (contexture-tools--tool-seconds tool)
        :sessions (cl-loop for place in places
                           when (eq (car-safe place) 'conversation) collect (cdr place))
        :projects (contexture-tools--folders 'project places)
        :everywhere (and (memq t places) t)
        :agent-projects (contexture-tools--folders 'agents places)
        :agents (and (memq 'agents places) t)))

(defun contexture-tools--touches (tool)
  "Return a phrase for what a call of TOOL can affect, or nil."
  (let ((touches (contexture-tools--tool-touches tool)))
    (if (functionp touches)
        (with-temp-buffer (funcall touches)) ; where calls run, too
      touches)))

(defun contexture-tools--check-touches (tool touches)
  "Signal an error unless a call of TOOL can affect TOUCHES, as the user was told."
  (unless (equal touches (contexture-tools--touches tool))
    (contexture-tools--changed)
    (error "%s now reaches other things than the user was told of; call it again"
           (contexture-tools--tool-name tool))))

(defun contexture-tools--folders (kind places)
  "Return the folders of those of PLACES that are of KIND.
KIND is `project' or `agents'."
  (cl-loop for place in places
           when (eq (car-safe place) kind) collect (expand-file-name (cdr place))))

(defun contexture-tools--schema (tool)
  "Return the JSON Schema of the arguments of TOOL, as a string of JSON."
  (let ((arguments (contexture-tools--tool-arguments tool)))
    (json-encode
     `((type . "object")
       (properties
        . ,(cl-loop with properties = (make-hash-table :test #'equal)
                    for (name description . plist) in arguments
                    do (puthash (symbol-name name)
                                `((type . ,(symbol-name (or (plist-get plist :type) 'string)))
                                  (description . ,description))
                                properties)
                    finally return properties))
       (required . ,(cl-loop for (name _ . plist) in arguments
                             unless (plist-get plist :optional)
                             collect (symbol-name name) into names
                             finally return (vconcat names)))))))

;;;; Calls

(defun contexture-tools--told (method params)
  "Do what the notification METHOD with PARAMS, from the server, asks for."
  (pcase method
    ('tool-called (contexture-tools--called params))
    ('tool-cancelled
     (when-let* ((call (gethash (plist-get params :call) contexture-tools--calls)))
       (contexture-tools--drop call)))))

(defun contexture-tools--called (params)
  "Run the tool that PARAMS, from the server, name, as soon as Emacs is idle.
If an agent calls a tool that changes something, or a call names a file that
may have secrets, ask the user first."
  (let ((number (plist-get params :call))
        (agent (plist-get params :agent))
        (project (contexture--outside-folder (plist-get params :project)))
        (tool (contexture-tools--named (plist-get params :tool))))
    (condition-case problem
        (if (not (and tool (contexture-tools--onp tool agent project)))
            (error "The user has turned this tool off")
          (when (and (eq (contexture-tools--tool-effect tool) :changes) (null agent))
            (contexture-tools--check-touches
             tool (cdr (assoc (contexture-tools--tool-name tool)
                              contexture-tools--told-touches))))
          (let ((call (contexture-tools--make-call
                       :number number :tool tool :project project
                       :agent agent
                       :values (contexture-tools--values
                                tool (plist-get params :arguments)))))
            (puthash number call contexture-tools--calls)
            (setf (contexture-tools--call-timer call)
                  (contexture--later
                   (if (if (eq (contexture-tools--tool-effect tool) :changes)
                           agent        ; else the server has asked
                         (contexture-tools--secret-of call))
                       #'contexture-tools--ask
                     #'contexture-tools--run)
                   call))))
      (error (contexture-tools--give number :error (error-message-string problem))))))

(defun contexture-tools--onp (tool agent project)
  "Return non-nil if TOOL is on anywhere for conversations, or for an AGENT.
AGENT is nil for a conversation, which the server checks.  For an agent, TOOL
must be on in PROJECT, a folder or nil."
  (let ((places (contexture-tools--places tool)))
    (if (null agent)
        (cl-some (lambda (place) (not (eq (or (car-safe place) place) 'agents))) places)
      (or (memq 'agents places)
          (and project
               (member project
                       (mapcar #'file-name-as-directory
                               (contexture-tools--folders 'agents places))))))))

(defun contexture-tools--values (tool text)
  "Return the values that TEXT, JSON, has for the arguments of TOOL, in order.
Signal an error if one is missing or of the wrong type."
  (let* ((json-object-type 'hash-table) (json-key-type 'string)
         (json-array-type 'list) (json-null nil) (json-false nil)
         (given (json-read-from-string text)))
    (cl-loop for (name _ . plist) in (contexture-tools--tool-arguments tool)
             for value = (gethash (symbol-name name) given)
             for type = (or (plist-get plist :type) 'string)
             when (and (null value) (not (plist-get plist :optional))
                       (not (eq type 'boolean)))
             do (error "The argument %s is missing" name)
             unless (or (null value)
                        (pcase type
                          ('integer (integerp value))
                          ('boolean (eq value t))
                          (_ (stringp value))))
             do (error "The argument %s must be of the type %s" name type)
             collect value)))

;;;;; Files with secrets

(defun contexture-tools--secret-of (call)
  "Return the name of the file that CALL names and that may have secrets, or nil.
Links are followed, and the name of a buffer stands for its file."
  (cl-loop
   with folder = (or (contexture-tools--call-project call) "/")
   for (argument) in (contexture-tools--tool-arguments (contexture-tools--call-tool call))
   for value in (contexture-tools--call-values call)
   thereis
   (and (eq argument 'file) (stringp value)
        (cl-find-if
         #'contexture--secret-file-p
         (cl-loop for name in (list value (when-let* ((buffer (get-buffer value)))
                                             (buffer-file-name buffer)))
                  for file = (contexture--outside-file name folder)
                  when name collect name
                  when file collect (file-truename file))))))

;;;;; Questions about the calls of other agents

;; Only the user can answer these: no method does, so no agent can allow its
;; own call.

(defvar-local contexture-tools--asked nil
  "The call that this buffer asks about, or nil once the user has decided.")

(defvar contexture-tools-question-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "y" #'contexture-tools-allow)
    (define-key map "n" #'contexture-tools-refuse)
    map)
  "Keymap of `contexture-tools-question-mode'.")

(define-derived-mode contexture-tools-question-mode special-mode "Question"
  "Major mode for a question whether an agent may call a tool.

See Info node `(contexture)Deciding'.

\\{contexture-tools-question-mode-map}"
  :interactive nil
  (setq-local revert-buffer-function #'ignore)
  (contexture--watch-shown #'contexture--note-shown-on)
  (add-hook 'window-buffer-change-functions #'contexture--note-appeared nil t)
  (add-hook 'window-selection-change-functions #'contexture--note-appeared nil t)
  (add-hook 'kill-buffer-hook #'contexture-tools--refuse nil t))

(defun contexture-tools--ask (call)
  "Ask the user, in a buffer, whether CALL may be made.
The selected window stays selected."
  (setf (contexture-tools--call-timer call) nil
        (contexture-tools--call-touches call)
        (contexture-tools--touches (contexture-tools--call-tool call)))
  (let ((buffer (generate-new-buffer "*contexture: question*"))
        (tool (contexture-tools--tool-name (contexture-tools--call-tool call))))
    (with-current-buffer buffer
      (contexture-tools-question-mode)
      (setq contexture-tools--asked call)
      (let ((inhibit-read-only t))
        (insert (contexture-tools--question call))
        (contexture--show-in-order)
        (goto-char (point-min))))
    (setf (contexture-tools--call-cancel call)
          (lambda ()
            (contexture--with-live-buffer buffer
              (setq contexture-tools--asked nil)
              (kill-buffer))))
    (display-buffer buffer '(nil (inhibit-same-window . t)))
    (contexture--message "%s wants to call %s; y or n in %s decides"
                         (contexture-tools--caller call) tool (buffer-name buffer))))

(defun contexture-tools--caller (call)
  "Return a phrase for who makes CALL."
  (or (contexture-tools--call-agent call) "The model of a conversation"))

(defun contexture-tools--question (call)
  "Return the text of the question about CALL, with its arguments in full."
  (let* ((tool (contexture-tools--call-tool call))
         (touches (contexture-tools--call-touches call)))
    (concat (propertize
             (format "%s wants to call %s in %s.\n"
                     (contexture--visible (contexture-tools--caller call))
                     (contexture-tools--tool-name tool)
                     (contexture--visible (or (contexture-tools--call-project call) "no project")))
             'face 'warning)
            (and touches (format "It reaches %s.\n" touches))
            (when-let* ((file (contexture-tools--secret-of call)))
              (format "The file %s may have secrets.\n" (contexture--visible file)))
            (substitute-command-keys
             "\\<contexture-tools-question-mode-map>\\[contexture-tools-allow] allows this call, \
\\[contexture-tools-refuse] refuses it.\n")
            (cl-loop for (name) in (contexture-tools--tool-arguments tool)
                     for value in (contexture-tools--call-values call)
                     when value
                     ;; Indented, so that no text can look like another argument.
                     concat (format "\n%s:\n  %s\n" name
                                    (string-replace
                                     "\n" "\n  " (contexture--visible (format "%s" value) t)))))))

(defun contexture-tools-allow ()
  "Allow the call that this buffer asks about, and make it."
  (interactive nil contexture-tools-question-mode)
  (contexture--check-read)
  (unless (or (contexture--all-shown-p)
              (contexture--y-or-n-p "The end of the call has not been shown; allow it anyway? "))
    (user-error "Nothing was decided; C-v shows what follows"))
  (let ((call (contexture-tools--take-question)))
    (setf (contexture-tools--call-cancel call) nil)
    (contexture-tools--close-question)
    (condition-case problem
        (progn (contexture-tools--check-touches (contexture-tools--call-tool call)
                                                (contexture-tools--call-touches call))
               (contexture-tools--run call))
      (error (contexture-tools--finish call :error (error-message-string problem))))))

(defun contexture-tools-refuse ()
  "Refuse the call that this buffer asks about."
  (interactive nil contexture-tools-question-mode)
  (contexture--check-read)
  (contexture-tools--refuse)
  (contexture-tools--close-question))

(defun contexture-tools--close-question ()
  "Kill this buffer, which asks about a call, and quit its windows.
Another question that comes into view in its place is a new one."
  (let ((buffer (current-buffer)))
    (quit-windows-on buffer)
    (kill-buffer buffer))
  (dolist (buffer (buffer-list))
    (when (buffer-local-value 'contexture-tools--asked buffer)
      (with-current-buffer buffer (setq contexture--appeared nil)))))

(defun contexture-tools--take-question ()
  "Return the call that this buffer asks about, and no longer ask.
Signal an error if it was decided already."
  (prog1 (or contexture-tools--asked (user-error "This question has already been decided"))
    (setq contexture-tools--asked nil)))

(defun contexture-tools--refuse ()
  "Refuse the call that this buffer asks about, unless it is decided."
  (when contexture-tools--asked
    (contexture-tools--finish (contexture-tools--take-question)
                              :error "The user did not allow the call")))

;;;;; Running

(defun contexture-tools--run (call)
  "Run CALL.
If its tool only reads, and the user's input interrupts it, try again later."
  (setf (contexture-tools--call-timer call) nil)
  (let ((tool (contexture-tools--call-tool call)))
    (pcase (if (and (eq (contexture-tools--tool-effect tool) :reads)
                    (not (contexture-tools--tool-async tool)))
               (while-no-input (contexture-tools--outcome call))
             (with-local-quit (contexture-tools--outcome call)))
      (`(result ,text) (contexture-tools--finish call :content text))
      (`(problem ,text) (contexture-tools--finish call :error text))
      ('nil (contexture-tools--finish call :error "The user interrupted this call"))
      ('t (setf (contexture-tools--call-timer call)
                (run-at-time contexture-tools--pause nil #'contexture-tools--run call))))))

(defun contexture-tools--outcome (call)
  "Call the function of the tool of CALL with the values of CALL.
Return (result TEXT), (problem TEXT) or, if the work goes on, (started)."
  (let* ((tool (contexture-tools--call-tool call))
         (project (contexture-tools--call-project call))
         (contexture-tool-project project)
         (function (contexture-tools--tool-function tool))
         (reads (eq (contexture-tools--tool-effect tool) :reads))
         ;; A question would make the user wait for a model.
         (inhibit-interaction reads)
         ;; To find a project's files, Emacs would evaluate what a folder says.
         (enable-dir-local-variables (and (not reads) enable-dir-local-variables)))
    (condition-case problem
        (with-temp-buffer
          (setq default-directory (or contexture-tool-project "/"))
          (if (contexture-tools--tool-async tool)
              (contexture-tools--start call function)
            (list 'result
                  (let ((result
                         (apply function (contexture-tools--call-values call))))
                    (if (stringp result) result
                      (error "The tool returned no text, but %s"
                             (type-of result)))))))
      (error (list 'problem (error-message-string problem))))))

(defun contexture-tools--start (call function)
  "Start CALL by FUNCTION, of an asynchronous tool; return (started)."
  (let ((cancel (apply function
                       (lambda (text &optional problem)
                         (contexture-tools--finish call (if problem :error :content)
                                                   (or problem text)))
                       (contexture-tools--call-values call))))
    (when (functionp cancel)
      (setf (contexture-tools--call-cancel call) cancel)))
  '(started))

(defun contexture-tools--finish (call key text)
  "End CALL with TEXT, its result if KEY is `:content', else its `:error'.
Do nothing if it has ended."
  (let ((number (contexture-tools--call-number call)))
    (when (eq (gethash number contexture-tools--calls) call)
      (remhash number contexture-tools--calls)
      (contexture-tools--give number key text))))

(defun contexture-tools--drop (call)
  "End CALL without a result, since nobody waits for that."
  (remhash (contexture-tools--call-number call) contexture-tools--calls)
  (when-let* ((timer (contexture-tools--call-timer call)))
    (cancel-timer timer))
  (when-let* ((cancel (contexture-tools--call-cancel call)))
    (with-demoted-errors "Contexture: %S" (funcall cancel))))

(defun contexture-tools--give (number key text)
  "Send TEXT to the server as the KEY, `:content' or `:error', of the call NUMBER.
Do nothing if no server is connected: then nobody waits for it."
  (when (contexture-running-p)
    (let ((contexture--own-call t))
      (contexture-request-async
       'give-result (list :call number key (contexture-tools--cut text))
       :error #'ignore))))

(defun contexture-tools--cut (text)
  "Return TEXT without properties, cut to what the server shows a model."
  (let ((most contexture-tools--longest-result))
    (if (<= (length text) most) (substring-no-properties text)
      (concat (substring-no-properties text 0 (- most 80))
              (format "\n... (%d of %d characters)" (- most 80) (length text))))))

;;; What models can read in Emacs

;; What is in buffers now; definitions, references and documentation as
;; Xref, ElDoc and Imenu know them; diagnostics; the output of compilations;
;; and searches in the project.
;;
;; A model sees buffers that visit files in the project of its conversation,
;; and no others.  No file is opened for a model: that could run code or ask
;; the user something.

(defconst contexture-tools-emacs--most-lines 200
  "Maximum number of lines of a list that is shown to a model.")

(defconst contexture-tools-emacs--longest-line 300
  "Maximum width of a line of a list that is shown to a model.")

;;;; What a model may see

(defun contexture-tools-emacs--project ()
  "Return the folder of the project in which a tool runs, or signal an error."
  (cond ((null contexture-tool-project)
         (error "This conversation has no project, so its model can see nothing in Emacs"))
        ((contexture--remote-p contexture-tool-project)
         (error "The project is on another machine"))
        (contexture-tool-project)))

(defun contexture-tools-emacs--buffers ()
  "Return the buffers that visit files of the project, the last used first."
  ;; The true names of buffers are known: no file is looked at for them.
  (let ((project (file-name-as-directory
                  (file-truename (contexture-tools-emacs--project)))))
    (cl-loop for buffer in (buffer-list)
             for file = (buffer-local-value 'buffer-file-name buffer)
             for true = (buffer-local-value 'buffer-file-truename buffer)
             when (and file true (not (contexture--remote-p file))
                       (string-prefix-p project (expand-file-name true)))
             collect buffer)))

(defun contexture-tools-emacs--path (file)
  "Return the full name of FILE, a name relative to the project's folder.
Signal an error if `contexture--outside-file' refuses it, unless a buffer of
the project visits it: Emacs has read that file already."
  (let ((project (contexture-tools-emacs--project)))
    (or (contexture--outside-file file project)
        (and (equal file (contexture--visible file))
             (not (string-prefix-p "~" file))
             (when-let* ((name (contexture--inertly (expand-file-name file project)))
                         (buffer (contexture--visited-buffer name))
                         ((memq buffer (contexture-tools-emacs--buffers))))
               (buffer-file-name buffer)))
        (error "%s is on another machine, packed, encrypted, or no file" (contexture--visible file)))))

(defun contexture-tools-emacs--buffer (file)
  "Return the buffer of the project that visits FILE, or signal an error."
  (let ((name (contexture-tools-emacs--path file)))
    (or (cl-find-if (lambda (buffer)
                      (with-current-buffer buffer
                        (or (equal name buffer-file-name)
                            (and buffer-file-truename
                                 (equal name (expand-file-name buffer-file-truename))))))
                    (contexture-tools-emacs--buffers))
        (error "No buffer of this project visits %s; list_buffers names those that do"
               file))))

(defun contexture-tools-emacs--name (file)
  "Return the name FILE, relative to the project's folder if it is below that.
Hidden characters and line ends in it become escapes."
  (contexture--visible
   (or (contexture--relative file (contexture-tools-emacs--project)) file)))

(defun contexture-tools-emacs--list (lines nothing)
  "Return LINES as one text, cut if there are too many or one is too long.
Return NOTHING, a string, if there are no LINES."
  (let ((more (- (length lines) contexture-tools-emacs--most-lines)))
    (if (null lines) nothing
      (concat (mapconcat (lambda (line)
                           (truncate-string-to-width
                            line contexture-tools-emacs--longest-line nil nil t))
                         (seq-take lines contexture-tools-emacs--most-lines) "\n")
              (if (> more 0) (format "\n... and %d more" more) "")))))

(defmacro contexture-tools-emacs--in (buffer &rest body)
  "Run BODY in BUFFER without narrowing; restore narrowing and point after it."
  (declare (indent 1) (debug t))
  `(with-current-buffer ,buffer
     (contexture--widened ,@body)))

;;;; Buffers

;; Runs nothing of a model's: it takes no argument.  Names are formatted without file-
;; name handlers, and no hook or mode is called.
(defun contexture-tools-emacs--list-buffers ()
  "List the files of the project that are open in Emacs, the last used first."
  (contexture-tools-emacs--list
   (mapcar (lambda (buffer)
             (with-current-buffer buffer
               (format "%s (%s%s)" (contexture-tools-emacs--name buffer-file-name) major-mode
                       (if (buffer-modified-p) ", not saved" ""))))
           (contexture-tools-emacs--buffers))
   "no file of the project is open"))

;; Runs nothing of a model's: the name is only compared with those of open buffers.  The
;; text is copied without properties, so no display property and no `buffer-substring-
;; filters' count.
(defun contexture-tools-emacs--read-buffer (file first last)
  "Return the lines FIRST to LAST of the buffer that visits FILE, below a title.
They default to the first and the last line of the buffer."
  (contexture-tools-emacs--in (contexture-tools-emacs--buffer file)
    (let* ((lines (line-number-at-pos (point-max)))
           (first (max 1 (or first 1)))
           (last (min lines (or last lines))))
      (goto-char (point-min))
      (forward-line (1- first))
      (concat (format "%s, lines %d to %d of %d%s:\n" file first last lines
                      (if (buffer-modified-p) ", not saved" ""))
              (buffer-substring-no-properties
               (point) (max (point) (line-beginning-position (+ 2 (- last first)))))))))

;;;; What Xref, Imenu and Lisp know

(defvar project-find-functions)
(defvar semantic-symref-tool-alist)
(defvar xref-file-name-display)

(defun contexture-tools-emacs--symbol-p (name)
  "Return non-nil if NAME, from a model, is no option and no command of a shell.
Some backends of Xref start programs with it."
  (string-match-p "\\`[^-[:space:][:cntrl:]\"'`;&|()\\\\][^[:space:][:cntrl:]\"'`;&|()\\\\]*\\'"
                  name))

(defun contexture-tools-emacs--goto (symbol line)
  "Go to SYMBOL on LINE, or to its first occurrence if LINE is nil.
Return non-nil if it occurs there."
  (goto-char (point-min))
  (when line (forward-line (1- line)))
  (when (re-search-forward (concat "\\_<" (regexp-quote symbol) "\\_>")
                           (and line (line-end-position)) t)
    (goto-char (match-beginning 0))))

;; Runs nothing of a model's: the symbol is a string for the backend that the user's
;; mode or hook chose, and a name that looks like an option or has what a shell reads is
;; refused.  The default methods start find and grep with the name quoted, and no other
;; program because of a file of the repository.  They look at files with matches in
;; modes that Emacs has for their names: not in those that the files say, without local
;; variables and without file-name handlers.  No definition is loaded: Emacs Lisp's
;; backend looks at what is loaded, and leaves autoloads and advice uncalled.
(defun contexture-tools-emacs--xrefs (finder symbol file line)
  "Return what FINDER finds for SYMBOL as it is used in FILE on LINE.
FINDER is a generic function of Xref."
  (require 'xref)
  (contexture-tools-emacs--in (contexture-tools-emacs--buffer file)
    (let* ((foundp (contexture-tools-emacs--goto symbol line))
           (backend (xref-find-backend))
           (name (or (and foundp (xref-backend-identifier-at-point backend)) symbol))
           (xref-file-name-display 'abs) ; else the folder may be missing
           ;; Xref looks at each file with a match in the mode that the file names.
           (enable-local-variables nil)
           (magic-mode-alist nil))
      (when (memq backend '(nil etags))
        (error "Emacs knows no definitions in %s: it has no language server there" file))
      (unless (or foundp (contexture-tools-emacs--symbol-p symbol))
        (error "%s is not the name of a symbol" (contexture--visible symbol)))
      (contexture-tools-emacs--list
       (mapcar (lambda (item)
                 (let* ((location (xref-item-location item))
                        (line (xref-location-line location)))
                   (format "%s%s: %s"
                           (contexture-tools-emacs--name
                            (xref-location-group location))
                           (if line (format ":%d" line) "")
                           (contexture--trim (xref-item-summary item)))))
               (cl-remove-if
                (lambda (item)
                  (contexture--secret-file-p (xref-location-group (xref-item-location item))))
                (contexture--inertly (funcall finder backend name))))
       (format "nothing is known about %s" symbol)))))

;; Runs nothing of a model's: see `contexture-tools-emacs--xrefs'.
(defun contexture-tools-emacs--definitions (symbol file line)
  "Return where SYMBOL, as it is used in FILE on LINE, is defined."
  (contexture-tools-emacs--xrefs #'xref-backend-definitions symbol file line))

;; Runs nothing of a model's: see `contexture-tools-emacs--xrefs'.
(defun contexture-tools-emacs--references (symbol file line)
  "Return where SYMBOL, as it is used in FILE on LINE, is used."
  (require 'semantic/symref)
  (require 'project)
  ;; Else Xref starts the programs of which the repository has an index, and adds the
  ;; project to the list of those that the user visited.
  (cl-letf* ((semantic-symref-tool-alist nil)
             (finders project-find-functions)
             (project-find-functions
              (list (lambda (folder)
                      (let ((default-directory folder) (project-find-functions finders))
                        (contexture--project)))))
             ((symbol-function 'project-remember-project) #'ignore))
    (contexture-tools-emacs--xrefs #'xref-backend-references symbol file line)))

;; Runs nothing of a model's: the function that makes the index, and the regexps, are
;; those of the buffer's mode.  A file sets neither: `imenu-create-index-function' and
;; `imenu-generic-expression' are risky local variables.  The functions that an index
;; has for its entries are not called.
(defun contexture-tools-emacs--outline (file)
  "Return the definitions in the buffer that visits FILE, as Imenu has them."
  (require 'imenu)
  (contexture-tools-emacs--in (contexture-tools-emacs--buffer file)
    ;; Imenu goes back from the end of the buffer, where it is slow to tell comments.
    (let* ((skipp (and imenu-generic-skip-comments-and-strings
                       imenu-generic-expression
                       (not (and imenu-prev-index-position-function
                                 imenu-extract-index-name-function))
                       (eq imenu-create-index-function
                           'imenu-default-create-index-function)))
           (imenu-generic-skip-comments-and-strings nil)
           (entries (contexture-tools-emacs--entries
                     (funcall imenu-create-index-function) "")))
      (when skipp
        (setq entries (contexture-tools-emacs--code entries)))
      (contexture-tools-emacs--list
       (mapcar (lambda (entry)
                 (format "%d: %s" (line-number-at-pos (car entry)) (cdr entry)))
               entries)
       "Imenu knows no definitions here"))))

(defun contexture-tools-emacs--code (entries)
  "Return those of ENTRIES that are in no comment or string.
Each is (PLACE . NAME)."
  (let ((place (point-min))
        state others)
    (syntax-propertize (point-max))
    (with-syntax-table (or syntax-ppss-table (syntax-table))
      ;; In one go, which is faster than `syntax-ppss' for each.
      (dolist (entry (sort (copy-sequence entries) #'car-less-than-car))
        (setq state (parse-partial-sexp place (car entry) nil nil state)
              place (car entry))
        (when (nth 8 state)
          (push entry others))))
    (cl-remove-if (lambda (entry) (memq entry others)) entries)))

(defun contexture-tools-emacs--entries (index prefix)
  "Return the entries of INDEX, an index of Imenu, each as (PLACE . NAME).
NAME begins with PREFIX."
  (cl-loop for item in index
           for name = (concat prefix (car item))
           for place = (if (overlayp (cdr-safe item)) (overlay-start (cdr item))
                         (if (consp (cdr-safe item)) (cadr item) (cdr-safe item)))
           if (imenu--subalist-p item)
           append (contexture-tools-emacs--entries (cdr item) (concat name "/"))
           else if (number-or-marker-p place)
           collect (cons place name)))

;; Runs nothing of a model's: `intern-soft' makes no symbol, and values are not printed.
;; `documentation' evaluates only what the image has under `function-documentation' and
;; `variable-documentation', calls the methods of `function-documentation', and reads
;; texts from files that were loaded.  It loads such a file again if it was compiled
;; anew.  Autoloads are not followed, and an advised function is not called.
(defun contexture-tools-emacs--describe (name)
  "Return the documentation of the function, variable and face called NAME.
Values are left out: they can be secrets."
  (let ((symbol (intern-soft name)))
    (unless (and symbol (or (fboundp symbol) (boundp symbol) (facep symbol)))
      (error "There is no function, variable or face %s in this Emacs" name))
    (string-join
     (delq nil
           (list (and (fboundp symbol) (contexture-tools-emacs--function symbol))
                 (and (boundp symbol)
                      (format "Variable %s:\n%s" symbol
                              (or (documentation-property symbol 'variable-documentation)
                                  "not documented")))
                 (and (facep symbol)
                      (format "Face %s:\n%s" symbol
                              (or (documentation-property symbol 'face-documentation)
                                  "not documented")))))
     "\n\n")))

(defun contexture-tools-emacs--function (symbol)
  "Return kind, arguments and documentation of the function SYMBOL."
  (require 'help)
  (let* ((text (documentation symbol))
         (split (help-split-fundoc text symbol)))
    (format "%s %s:\n%s"
            (cond ((special-form-p symbol) "Special form")
                  ((macrop symbol) "Macro")
                  ((commandp symbol) "Command")
                  (t "Function"))
            (or (car split) (cons symbol (help-function-arglist symbol t)))
            (or (cdr split) text "not documented"))))

;; Runs nothing of a model's: the functions are those that the user's modes have put on
;; `eldoc-documentation-functions', which is no safe local variable.  They see the place
;; in the buffer, not the argument: it is only searched for.  Some ask a language server
;; or an interpreter that the user started, and give it the name there.  File-name
;; handlers are off meanwhile.
(defun contexture-tools-emacs--documentation (done symbol file line)
  "Call DONE with ElDoc's text about SYMBOL, as it is used in FILE on LINE.
Return a function that does nothing, since this cannot be stopped."
  (require 'eldoc)
  (let (texts waiting over)
    (cl-flet ((tell () (unless over
                         (setq over t)
                         (funcall done (string-join (nreverse texts) "\n")))))
      (contexture-tools-emacs--in (contexture-tools-emacs--buffer file)
        (unless (contexture-tools-emacs--goto symbol line)
          (error "%s does not occur %s" symbol
                 (if line (format "on line %s" line) "in the file")))
        (run-hook-wrapped
         'eldoc-documentation-functions
         (lambda (function)
           (let* ((told nil)
                  (answer (contexture--inertly
                            (funcall function
                                     (lambda (text &rest plist)
                                       (setq told t)
                                       (when text
                                         (push (contexture-tools-emacs--said text plist)
                                               texts)
                                         (when waiting (tell))))))))
             (cond ((stringp answer) (push answer texts))
                   ((and answer (not told)) (setq waiting t))))
           nil)))
      (cond (texts (tell))
            ((not waiting) (funcall done (format "ElDoc says nothing about %s" symbol)))))
    #'ignore))

(defun contexture-tools-emacs--said (text plist)
  "Return TEXT from ElDoc, preceded by the name in PLIST, if there is one."
  (let ((thing (plist-get plist :thing)))
    (if thing (format "%s: %s" thing text) (format "%s" text))))

;;;; Diagnostics and compilations

;; Runs nothing of a model's: it formats what Flymake and Flycheck have found.  It does
;; not start a check, and calls no backend and no hook.
(defun contexture-tools-emacs--diagnostics (file)
  "Return the diagnostics of FILE, or of all the project's open files if nil."
  (contexture-tools-emacs--list
   (cl-loop for buffer in (if file (list (contexture-tools-emacs--buffer file))
                            (cl-remove-if (lambda (buffer)
                                            (contexture--secret-file-p (buffer-file-name buffer)))
                                          (contexture-tools-emacs--buffers)))
            append (contexture-tools-emacs--in buffer
                     (append
                      (cl-loop for it in (and (bound-and-true-p flymake-mode)
                                              (flymake-diagnostics))
                               collect (contexture-tools-emacs--diagnostic
                                        (line-number-at-pos
                                         (flymake-diagnostic-beg it))
                                        (flymake-diagnostic-type it)
                                        (flymake-diagnostic-text it)))
                      (cl-loop for it in (and (bound-and-true-p flycheck-mode)
                                              flycheck-current-errors)
                               collect (contexture-tools-emacs--diagnostic
                                        (flycheck-error-line it)
                                        (flycheck-error-level it)
                                        (flycheck-error-format-message-and-id
                                         it))))))
   "Flymake and Flycheck report nothing, or are off"))

(defun contexture-tools-emacs--diagnostic (line kind text)
  "Return the text for a diagnostic of this buffer on LINE, of KIND, with TEXT."
  (format "%s:%d: %s: %s" (contexture-tools-emacs--name buffer-file-name) line
          (string-remove-prefix ":" (format "%s" kind))
          (subst-char-in-string ?\n ?\s text)))

(defconst contexture-tools-emacs--most-output 20000
  "Maximum number of characters of a compilation's output that a model sees.")

;; Runs nothing of a model's: it takes no argument.  It copies the text of a buffer
;; without properties, parses nothing, and asks no file-name handler about the folders
;; of buffers.
(defun contexture-tools-emacs--compilation ()
  "Return the name and the end of the project's last compilation buffer."
  (require 'compile)
  (let* ((project (contexture-tools-emacs--project))
         (buffer (cl-find-if
                  (lambda (buffer)
                    (let ((folder (buffer-local-value 'default-directory buffer)))
                      (and (compilation-buffer-p buffer)
                           (not (contexture-outside--taken-p folder))
                           (file-in-directory-p folder project))))
                  (buffer-list))))
    (unless buffer
      (error "Nothing has been compiled in this project yet"))
    (contexture-tools-emacs--in buffer
      (format "%s%s:\n%s" (buffer-name)
              (if (get-buffer-process buffer) ", still running" "")
              (buffer-substring-no-properties
               (max (point-min) (- (point-max) contexture-tools-emacs--most-output))
               (point-max))))))

;;;; Searching

;; Runs nothing of a model's: Git and grep are started without a shell, and the regexp
;; follows -e.  Git runs none of the repository's filters, pagers and conversions.  What
;; they print is split into lines; no mode is called.
(defun contexture-tools-emacs--search (done regexp)
  "Call DONE with the lines of the project's files that match REGEXP.
REGEXP is an extended one, as for grep.  Leave out files that may have
secrets.  Return a function that ends the search."
  (let ((root (contexture-tools-emacs--git))
        (project (contexture-tools-emacs--project)))
    (contexture-tools-emacs--lines
     done "nothing matches"
     `(,@(if root `(,@(contexture--git root) "grep" "--no-textconv" "--untracked" "--no-color"
                    "-z")
           '("grep" "-r" "-Z" "--exclude-dir=.git"))
       "-nIE" "-e" ,regexp "--" ".")
     contexture-tools--longest-result
     (lambda (lines)
       ;; Each is the name of a file, a null, and the rest; Git has a null after the number, too.
       (cl-loop for line in lines
                for (name . more) = (split-string line "\0")
                ;; The folder of the project, or the user's settings, can make it one.
                unless (contexture--secret-file-p
                        (contexture--inertly (expand-file-name name project)))
                collect (string-join (cons name more) ":"))))))

(defconst contexture-tools-emacs--longest-pattern 255
  "Maximum number of characters of a pattern for names of files.")

(defconst contexture-tools-emacs--most-stars 8
  "Maximum number of stars in a pattern for names of files.
Comparing many names with more would hold Emacs.")

(defconst contexture-tools-emacs--most-names 4000000
  "Maximum number of characters in a list of file names.")

;; Runs nothing of a model's: the pattern is no argument of a program.  Git and find
;; list all names, without a shell, and `contexture-tools-emacs--glob' compares them.
(defun contexture-tools-emacs--files (done &optional pattern)
  "Call DONE with the names of the project's files that match PATTERN.
PATTERN is a part of the name or a glob, or nil for all files.  Return a
function that ends the search."
  (let ((matches (contexture-tools-emacs--glob (or pattern ""))))
    (when (or (> (length pattern) contexture-tools-emacs--longest-pattern)
              (> (cl-count ?* pattern) contexture-tools-emacs--most-stars))
      (error "The pattern is too long: at most %d characters and %d stars"
             contexture-tools-emacs--longest-pattern contexture-tools-emacs--most-stars))
    (contexture-tools-emacs--lines
     done "no file of the project has such a name"
     (if-let* ((root (contexture-tools-emacs--git)))
         `(,@(contexture--git root) "-c" "core.quotePath=off"
           "ls-files" "--cached" "--others" "--exclude-standard")
       '("find" "." "-name" ".?*" "-prune" "-o" "-type" "f" "-print"))
     contexture-tools-emacs--most-names
     (lambda (lines)
       (cl-loop for line in lines
                for name = (string-remove-prefix "./" line)
                when (funcall matches name) collect name)))))

(defun contexture-tools-emacs--glob (pattern)
  "Return a function that tells whether a name matches PATTERN, in any case.
PATTERN is a part of the name, or a glob for the name or its end after a
slash.  The function takes no time that grows with the number of stars, as one
regexp would: it looks for each part behind the first place of the one before."
  (if (not (string-match-p "[*?]" pattern))
      (lambda (name) (let ((case-fold-search t))
                       (string-match-p (regexp-quote pattern) name)))
    (let* ((parts (mapcar #'contexture-tools-emacs--glob-part (split-string pattern "\\*+")))
           (first (concat "\\(?:\\`\\|/\\)" (car parts) (and (null (cdr parts)) "\\'")))
           (last (and (cdr parts) (concat (car (last parts)) "\\'")))
           (between (butlast (cdr parts))))
      (lambda (name)
        (let* ((case-fold-search t)
               (from (and (string-match first name) (match-end 0))))
          (dolist (part between)
            (setq from (and from (string-match part name from) (match-end 0))))
          (and from
               (or (null last) (string-match-p last name from))))))))

(defun contexture-tools-emacs--glob-part (part)
  "Return the regexp for PART of a glob, which has no star.
Brackets that Emacs cannot read as a class stand for themselves."
  (condition-case nil
      (let ((regexp (substring (wildcard-to-regexp part) 2 -2)))
        (string-match-p regexp "")
        regexp)
    (error (regexp-quote part))))

(defun contexture-tools-emacs--git ()
  "Return the root of the repository of Git that the project is in, or nil."
  (locate-dominating-file (contexture-tools-emacs--project) ".git"))

(defun contexture-tools-emacs--lines (done nothing command most &optional choose)
  "Call DONE with the lines that COMMAND prints in the project, as one text.
If there are none, call it with NOTHING.  COMMAND is a list; end it once it
has printed MOST characters.  CHOOSE, if given, is a function that returns
those of the lines to show.  Return a function that ends COMMAND."
  (let* ((default-directory (contexture-tools-emacs--project))
         (choose (or choose #'identity)) (said "") (rest "") (found nil) (length 0)
         (process-environment (contexture--git-environment))
         (process
          (make-process
           :name "contexture-search" :connection-type 'pipe :noquery t :command command
           ;; As they come: all the lines at once would hold Emacs.
           :filter (lambda (process text)
                     (when (< (length said) contexture-tools-emacs--longest-line)
                       (setq said (concat said text)))
                     (let* ((lines (split-string (concat rest text) "\n"))
                            (last (last lines)))
                       (setq rest (car last)
                             found (nconc (nreverse (funcall choose (delete "" (nbutlast lines))))
                                          found)))
                     (when (> (cl-incf length (length text)) most)
                       (delete-process process)))
           :sentinel (lambda (process _)
                       (unless (process-live-p process)
                         (if (and (eq (process-status process) 'exit)
                                  (> (process-exit-status process) 1))
                             (funcall done nil (contexture--trim said))
                           (funcall done (contexture-tools-emacs--list
                                          (nconc (nreverse found)
                                                 (funcall choose (delete "" (list rest))))
                                          nothing))))))))
    (lambda ()
      (set-process-sentinel process #'ignore)
      (delete-process process))))

;;;; The tools

(defconst contexture-tools-emacs--file
  '(file "File that is open in Emacs, relative to the project")
  "The argument that names a file.")

(defconst contexture-tools-emacs--place
  `((symbol "Name of the symbol")
    ,contexture-tools-emacs--file
    (line "Line on which the symbol is used" :type integer :optional t))
  "The arguments that name a symbol where it is used.")

(pcase-dolist
    (`(,name ,function ,arguments ,description . ,more)
     `(("list_buffers" contexture-tools-emacs--list-buffers nil
        "Lists the files of the project that are open in the user's editor, the last used first.")
       ("read_buffer" contexture-tools-emacs--read-buffer
        (,contexture-tools-emacs--file
         (first "First line" :type integer :optional t)
         (last "Last line" :type integer :optional t))
        "Reads an open file as it is in the editor now, with changes that are not saved.")
       ("find_definitions" contexture-tools-emacs--definitions ,contexture-tools-emacs--place
        "Finds where a symbol is defined.")
       ("find_references" contexture-tools-emacs--references ,contexture-tools-emacs--place
        "Finds where a symbol is used.")
       ("list_definitions" contexture-tools-emacs--outline (,contexture-tools-emacs--file)
        "Lists the definitions in an open file, with their lines.")
       ("find_documentation" contexture-tools-emacs--documentation
        ,contexture-tools-emacs--place
        "Finds the signature and the documentation of a symbol where it is used." :async t)
       ("describe_elisp" contexture-tools-emacs--describe
        ((name "Name of the function, variable or face"))
        "Documents a function, a variable or a face of Emacs Lisp.")
       ("list_diagnostics" contexture-tools-emacs--diagnostics
        ((file "File that is open in Emacs; all of them if left out" :optional t))
        "Lists the errors and warnings that the editor shows.")
       ("compilation_output" contexture-tools-emacs--compilation nil
        "Reads the end of the output of the project's last compilation or test run.")
       ("list_files" contexture-tools-emacs--files
        ((pattern "Part of their names, or a glob such as *.el; all if left out" :optional t))
        "Lists the names of the project's files, without those that Git ignores." :async t)
       ("search_project" contexture-tools-emacs--search
        ((regexp "Extended regular expression, as for grep"))
        "Searches the saved files of the project." :async t)))
  (apply #'contexture-define-tool name function arguments :reads
         :description description more))

;;; Changes and runs that models ask for

;; A model can propose a change of a file of the project: the change is shown
;; in the file's buffer, as `contexture-rewrite' shows one, and the model is
;; told what the user decided.  And it can run the project's commands, to
;; compile and to test; failures become items of the context.
;;
;; What runs is what the user was asked about: the argument of the call is
;; the whole command line.

;;;; Which buffer may be changed

(defconst contexture-tools-change--longest 200000
  "Maximum number of characters of a new text that a model proposes.")

(defun contexture-tools-change--buffer (file)
  "Return the buffer of FILE, in which a change can be proposed.
FILE may not exist yet, and may be the name of a buffer.  Signal an error if
its text must not, or cannot, be changed."
  (let* ((name (contexture-tools-change--file file))
         (buffer (or (find-buffer-visiting name)
                     (contexture-tools-change--open file name))))
    (with-current-buffer buffer
      (when buffer-read-only
        (error "%s is read-only in Emacs" file))
      (unless (verify-visited-file-modtime)
        (error "%s changed on disk after Emacs read it; the user has to revert its buffer" file)))
    buffer))

(defun contexture-tools-change--file (file)
  "Return the true name of FILE; signal an error if models must not change it."
  (let* ((true (file-truename (contexture-tools-change--named file)))
         (inside (file-relative-name true (file-truename contexture-tool-project))))
    (cond ((or (string-prefix-p "../" inside) (file-name-absolute-p inside))
           (error "%s is outside of the project" file))
          ((cl-intersection (split-string inside "/") vc-directory-exclusion-list
                            ;; In some file systems, capitals are the same.
                            :test (lambda (a b) (eq t (compare-strings a nil nil b nil nil t))))
           (error "%s belongs to version control" file)))
    true))

(defun contexture-tools-change--named (file)
  "Return the full name of FILE.
If there is no such file, but a buffer of that name, return its file."
  (let* ((name (contexture-tools-emacs--path file))
         (buffer (and (not (file-exists-p name)) (get-buffer file))))
    (cond ((null buffer) name)
          ((buffer-base-buffer buffer)
           (error "%1$s shows a part of %2$s; propose the change to %2$s"
                  file (buffer-name (buffer-base-buffer buffer))))
          ((null (buffer-file-name buffer)) (error "%s visits no file" file))
          (t (contexture-tools-emacs--path (buffer-file-name buffer))))))

(defun contexture-tools-change--open (file name)
  "Visit FILE, whose true name is NAME, and return its buffer.
Ask no question, and ignore local variables that are not safe."
  (let ((size (file-attribute-size (or (file-attributes name)
                                       '(nil nil nil nil nil nil nil 0)))))
    (cond ((and (file-exists-p name) (not (file-regular-p name)))
           (error "%s is not a file" file))
          ((not (file-directory-p (file-name-directory name)))
           (error "The folder of %s does not exist" file))
          ((> size (or large-file-warning-threshold most-positive-fixnum))
           (error "%s is too large: it has %d bytes" file size))))
  (or (contexture--visit-quietly name)
      (error "%s is no text" file)))

;;;; Proposing a change

(defun contexture-tools-change--propose (done file new old definition)
  "Propose NEW in place of OLD in FILE; call DONE with what the user decides.
If OLD is nil or empty, NEW is to replace the definition called DEFINITION,
or becomes the text of an empty file.  Return a function that withdraws the
proposal."
  (when (> (length new) contexture-tools-change--longest)
    (error "The new text is too long: at most %d characters" contexture-tools-change--longest))
  (let* ((project contexture-tool-project)
         (old (and (not (equal old "")) old))
         (definition (and (not old) (not (equal definition "")) definition))
         (known (buffer-list))
         (buffer (contexture-tools-change--buffer file)))
    (condition-case problem
        (with-current-buffer buffer
          (pcase-let* ((`(,beg . ,end) (contexture-tools-change--place file old definition))
                       (text (contexture-tools-change--text beg end)))
            (when definition
              (setq new (concat (contexture--trim-right new "\n")
                                (and (string-suffix-p "\n" text) "\n"))))
            (when (equal text new)
              (error "%s already has that text" file))
            (contexture-tools-change--review done file beg end new project)))
      (error (unless (memq buffer known) (kill-buffer buffer))
             (signal (car problem) (cdr problem))))))

(defun contexture-tools-change--place (file old definition)
  "Return the bounds of OLD, or else of DEFINITION, in this buffer, of FILE.
Signal an error unless there is exactly one such place."
  (contexture--widened
    (let ((found (cond (old (contexture-tools-change--matches old))
                       (definition (contexture-defun--named definition))
                       ((= (point-min) (point-max)) (list (cons (point-min) (point-max))))
                       (t (error "Say which text of %s to replace" file))))
          (what (if old "The old text" (format "The definition of %s" definition))))
      (cond ((null found)
             (error "%s is not in %s as it is now; read_buffer shows it" what file))
            ((cdr found)
             (error "%s is in %s more than once; give more of the lines around it as the old text"
                    what file)))
      (cons (copy-marker (caar found)) (copy-marker (cdar found) t)))))

(defun contexture-tools-change--matches (text)
  "Return the bounds of the first two occurrences of TEXT, or of fewer."
  (goto-char (point-min))
  (let ((case-fold-search nil))
    (cl-loop repeat 2
             while (search-forward text nil t)
             collect (cons (match-beginning 0) (match-end 0))
             ;; Occurrences may overlap.
             do (goto-char (1+ (match-beginning 0))))))

(defun contexture-tools-change--text (beg end)
  "Return the text of this buffer from BEG to END, regardless of narrowing."
  (contexture--widened (buffer-substring-no-properties beg end)))

(defun contexture-tools-change--review (done file beg end new project)
  "Propose NEW in place of the text from BEG to END in this buffer, of FILE.
BEG and END are markers; PROJECT is the project's folder.  Call DONE with
what the user decides.  Return a function that withdraws the proposal."
  (let ((buffer (current-buffer))
        (old (contexture-tools-change--text beg end))
        review)
    (letrec ((forget (lambda ()
                       (contexture-review--end review)
                       (contexture--with-live-buffer buffer
                         (remove-hook 'kill-buffer-hook killed t))))
             (killed (lambda ()
                       (funcall forget)
                       (funcall done nil (format "The user closed %s" file))))
             (decide (lambda (&optional remark)
                       (funcall forget)
                       (funcall done (with-current-buffer buffer
                                       (contexture-tools-change--outcome
                                        file beg end old new remark))))))
      (setq review (contexture-review--begin beg end :again decide :decided decide))
      (contexture-review--show review new t)
      (add-hook 'kill-buffer-hook killed nil t)
      (contexture-tools-change--point-out buffer beg project)
      (lambda ()
        (unless (contexture-review--ended-p review)
          (contexture--message "The change to %s that a model proposed was withdrawn"
                               (buffer-name buffer)))
        (funcall forget)))))

(defun contexture-tools-change--point-out (buffer place project)
  "Show PLACE in BUFFER, where a model proposes a change, with a message.
The file is named relative to PROJECT.  The selected window stays selected."
  (unless (active-minibuffer-window)
    (when-let* ((window (display-buffer buffer '(nil (inhibit-same-window . t)))))
      (set-window-point window place)))
  (contexture--message
   "The model proposes a change to %s; %s goes there, where C-c C-c accepts it, C-c C-k rejects it"
   (file-relative-name (buffer-file-name buffer) project)
   (contexture--key 'contexture-review-next)))

(defun contexture-tools-change--outcome (file beg end old new remark)
  "Return the text that tells a model what the user decided on its proposal.
NEW was to replace OLD in this buffer, of FILE; the text is now from BEG to
END.  REMARK is what the user said, or nil."
  (let ((now (contexture-tools-change--text beg end)))
    (string-join
     (delq nil
           (list (cond ((equal now new) (format "The user accepted the change to %s." file))
                       ((equal now old) (format "The user rejected the change to %s." file))
                       (t (format "The user accepted a part of the change to %s.  \
Your proposal (-) became (+):\n%s"
                                  file (contexture-tools-change--differences new now))))
                 (and remark (format "The user says: %s" remark))
                 (and (not (equal now old)) (buffer-modified-p)
                      (format "%s is not saved yet." file))))
     "\n")))

(defun contexture-tools-change--differences (new now)
  "Return how the text NOW differs from NEW, as lines with - (NEW) and + (NOW)."
  (let ((lines (split-string new "\n")))
    (cl-flet ((marked (sign lines)
                (mapconcat (lambda (line) (concat sign line "\n")) lines "")))
      (mapconcat (pcase-lambda (`(,line ,count . ,text))
                   (concat (marked "-" (cl-subseq lines line (+ line count)))
                           (marked "+" (and (not (string-empty-p text))
                                            (split-string (string-remove-suffix "\n" text)
                                                          "\n")))))
                 (contexture-review--compare new now) "\n"))))

;;;; Which commands may be run

(defcustom contexture-tools-commands nil
  "Commands that models may run in a project, by the tool `run_command'.
Each is (NAME . COMMAND), such as (\"test\" . \"make test\"); it runs in
the project's folder.  Models may also run `compile-command'.  To set this
for one project, use its .dir-locals.el, about which Emacs asks you."
  :type '(alist :key-type (string :tag "Name") :value-type (string :tag "Command"))
  :group 'contexture)

(defcustom contexture-tools-command-seconds 600
  "Number of seconds after which a command that a model runs is stopped."
  :type '(integer :match (lambda (_ value) (<= 1 value 3500)))
  :group 'contexture)

(defun contexture-tools-change--commands ()
  "Return the commands that models may run in the project.
Each is (NAME . COMMAND)."
  (let ((buffers (contexture-tools-emacs--buffers)))
    (seq-uniq
     (append (cl-loop for buffer in buffers
                      append (buffer-local-value 'contexture-tools-commands buffer))
             (default-value 'contexture-tools-commands)
             (cl-loop for command in (contexture-tools-change--compilers buffers)
                      collect (cons "compile" command)))
     (lambda (one other) (equal (cdr one) (cdr other))))))

(defun contexture-tools-change--compilers (buffers)
  "Return the values of `compile-command' that the user chose, as a list.
They are those of BUFFERS and the default.  A value that a file of the
project sets counts only if it is in `safe-local-variable-values', since Emacs
takes any string without a question."
  (require 'compile)
  (append
   (cl-loop for buffer in buffers
            for value = (buffer-local-value 'compile-command buffer)
            when (and (local-variable-p 'compile-command buffer)
                      (stringp value)
                      (or (not (assq 'compile-command
                                     (buffer-local-value 'file-local-variables-alist buffer)))
                          (member (cons 'compile-command value) safe-local-variable-values)))
            collect value)
   (let ((value (default-value 'compile-command)))
     (and (stringp value)
          (or (not (equal value (eval (car (get 'compile-command 'standard-value)) t)))
              (file-exists-p (expand-file-name "Makefile" contexture-tool-project)))
          (list value)))))

;; Runs nothing of a model's: it takes no argument, and runs none of the commands.
;; Values that a file sets count only if the user has agreed to them.
(defun contexture-tools-change--list-commands ()
  "Return a list of the commands that models may run in the project."
  (contexture-tools-emacs--project)
  (contexture-tools-emacs--list
   (mapcar (lambda (it) (format "%s: %s" (car it) (contexture--trim (cdr it))))
           (contexture-tools-change--commands))
   "the user has set no command for this project"))

(defun contexture-tools-change--run-named (done command)
  "Run COMMAND, one of the project's; call DONE with its result.
Return a function that stops it.  Signal an error for any other command."
  (let ((known (mapcar (lambda (it) (contexture--trim (cdr it)))
                       (contexture-tools-change--commands))))
    (unless (member command known)
      (error "This is not one of the project's commands; list_commands lists them.  \
Pass one to run_command exactly as listed, without its name"))
    (contexture-tools-change--run done command)))

;;;; Running a command

(defconst contexture-tools-change--most-kept 200000
  "Number of characters of output that are always kept while a command runs.
Older output may be deleted.")

(defconst contexture-tools-change--most-failures 20
  "Maximum number of failures that become items of the context.")

(defconst contexture-tools-change--most-listed 50
  "Maximum number of failures to look for.")

(defconst contexture-tools-change--grace 2
  "Number of seconds after which to kill a command that was interrupted.")

(defvar-local contexture-tools-change--current nil
  "The run of a command whose output this buffer has.")

(defvar-local contexture-tools-change--items nil
  "Items for the failures of this buffer's last command, as (MANAGER . IDS).")
(put 'contexture-tools-change--items 'permanent-local t)

(cl-defstruct (contexture-tools-change--run (:constructor contexture-tools-change--make-run)
                                            (:conc-name contexture-tools-change--run-)
                                            (:copier nil))
  "A run of COMMAND with its output in BUFFER.
DONE is called with the result.  FROM and TO are markers around the output;
TIMER will stop the run; STOPPED is a phrase that says why it was stopped, or
nil; EXIT says how it ended, as (KIND . CODE), or is nil."
  command buffer done from to timer stopped exit)

(defun contexture-tools-change--run (done command)
  "Run COMMAND in the project's folder; call DONE with its result.
Return a function that stops it.  Signal an error if COMMAND is empty, too
long, or has characters that the user could not see."
  (cond ((string-blank-p command) (error "The command is empty"))
        ((> (length command) 2000)
         (error "The command is too long: at most 2000 characters"))
        ((not (equal command (contexture--visible command)))
         (error "The command has line ends, or characters that cannot be seen")))
  (let* ((buffer (contexture-tools-change--start command))
         (run (contexture-tools-change--make-run
               :command command :buffer buffer :done done))
         (seconds contexture-tools-command-seconds))
    (with-current-buffer buffer
      (setq contexture-tools-change--current run)
      (setf (contexture-tools-change--run-from run)
            (copy-marker (process-mark (get-buffer-process buffer))))
      (add-hook 'compilation-filter-hook #'contexture-tools-change--forget-beginning nil t)
      (contexture-tools-change--tame (get-buffer-process buffer))
      (setq-local compilation-exit-message-function
                  (apply-partially #'contexture-tools-change--exited run))
      (add-hook 'compilation-finish-functions
                (lambda (&rest _) (contexture-tools-change--ended run)) nil t)
      (add-hook 'kill-buffer-hook
                (lambda () (contexture-tools-change--closed run)) nil t))
    (setf (contexture-tools-change--run-timer run)
          (run-at-time seconds nil #'contexture-tools-change--stop run
                       (concat "stopped after " (contexture--count seconds "second"))))
    (apply-partially #'contexture-tools-change--stop run "cancelled")))

(defun contexture-tools-change--start (command)
  "Start COMMAND in the project's folder and return the buffer of its output.
Signal an error if a command is still running there."
  (require 'compile)
  (let* ((default-directory (contexture-tools-emacs--project))
         (name (format "*contexture: command in %s*"
                       (contexture--last-name default-directory)))
         (process-connection-type nil)
         (compilation-disable-input t)
         (display-buffer-overriding-action '(display-buffer-no-window
                                             (allow-no-window . t))))
    (when (get-buffer-process name)
      (error "A command is still running in this project"))
    (contexture--message "The model runs %s in %s" command name)
    ;; If the command begins with cd, Emacs goes to that folder, too: by TRAMP, to
    ;; another machine, where no shell would.
    (contexture--inertly (compilation-start command nil (lambda (_) name)))))

(defun contexture-tools-change--inertly (function &rest arguments)
  "Apply FUNCTION to ARGUMENTS, without file-name handlers."
  (contexture--inertly (apply function arguments)))

(defvar contexture-tools-change--map
  (let ((map (make-sparse-keymap)))
    (define-key map [remap compile-goto-error]
      (lambda ()
        (interactive)
        (contexture-tools-change--inertly #'call-interactively #'compile-goto-error)))
    map)
  "Keymap of the output of a command that a model runs.")

(defun contexture-tools-change--tame (process)
  "Let Emacs connect to no machine that the output of PROCESS, here, names.
Emacs looks at the folders that it names, as it comes and when it is drawn,
and goes to the files and folders that it names."
  (add-function :around (process-filter process) #'contexture-tools-change--inertly)
  (add-function :filter-args (process-filter process) #'contexture-tools-change--break)
  (add-function :around (local 'font-lock-fontify-region-function)
                #'contexture-tools-change--inertly)
  (add-function :around (local 'next-error-function) #'contexture-tools-change--inertly)
  (use-local-map (make-composed-keymap contexture-tools-change--map (current-local-map))))

(defconst contexture-tools-change--longest-line 1000
  "Number of characters after which a line of output is broken.
Emacs looks for failures from the beginning of the line with each piece of
output: in a line without end that fails, or takes longer each time.")

(defun contexture-tools-change--break (arguments)
  "Return ARGUMENTS of a filter, a process and its output, with long lines broken."
  (pcase-let* ((`(,process ,text) arguments)
               (longest contexture-tools-change--longest-line)
               (buffer (process-buffer process))
               (before (if (not (buffer-live-p buffer)) 0
                         (with-current-buffer buffer
                           (save-excursion
                             (goto-char (process-mark process))
                             (- (point) (line-beginning-position)))))))
    (list process
          (replace-regexp-in-string
           (format "\\([^\n]\\{%d\\}\\)\\([^\n]\\)" longest) "\\1\n\\2"
           (if (and (> (+ before (or (string-search "\n" text) (length text))) longest)
                    (not (string-prefix-p "\n" text)))
               (concat "\n" text)
             text)))))

(defun contexture-tools-change--forget-beginning ()
  "Delete the beginning of this buffer's output if there is too much output."
  (when (> (buffer-size) (* 2 contexture-tools-change--most-kept))
    (save-excursion
      (goto-char (- (point-max) contexture-tools-change--most-kept))
      (let ((inhibit-read-only t)
            ;; Else all that is kept would be searched for failures again.
            (inhibit-modification-hooks t))
        (delete-region (point-min) (line-beginning-position))))))

(defun contexture-tools-change--exited (run kind code message)
  "Record that RUN ended with KIND and CODE; return (MESSAGE . CODE).
This is for `compilation-exit-message-function'."
  (setf (contexture-tools-change--run-exit run) (cons kind code)
        (contexture-tools-change--run-to run) (point-max-marker))
  (cons message code))

(defun contexture-tools-change--stop (run why)
  "Interrupt RUN, and kill it if it does not end soon.
WHY is a phrase that says why.  If RUN was interrupted already, kill it."
  (when-let* ((process (get-buffer-process (contexture-tools-change--run-buffer run)))
              ((process-live-p process)))
    (cancel-timer (contexture-tools-change--run-timer run))
    (if (contexture-tools-change--run-stopped run)
        (kill-process process)
      (setf (contexture-tools-change--run-stopped run) why
            (contexture-tools-change--run-timer run)
            (run-at-time contexture-tools-change--grace nil
                         #'contexture-tools-change--stop run why))
      (interrupt-process process))))

(defun contexture-tools-change--closed (run)
  "Clean up after RUN, whose buffer is being killed.
If it still runs, call its function with an error."
  (cancel-timer (contexture-tools-change--run-timer run))
  (unless (contexture-tools-change--run-exit run)
    (funcall (contexture-tools-change--run-done run) nil "The user closed its output")))

(defun contexture-tools-change--ended (run)
  "Look for failures in the output of RUN, which has ended."
  (cancel-timer (contexture-tools-change--run-timer run))
  (require 'contexture-sources)
  (contexture--later #'contexture-tools-change--search
                     run (contexture-tools-change--run-from run) nil))

(defconst contexture-tools-change--step 4000
  "Number of characters of output to search for failures at a time.")

(defun contexture-tools-change--search (run position failures)
  "Search RUN's output for failures from POSITION on; then give the result.
FAILURES are the positions of the failures before POSITION, the last first."
  (let ((buffer (contexture-tools-change--run-buffer run)))
    (if (not (and (buffer-live-p buffer)
                  (eq run (buffer-local-value 'contexture-tools-change--current buffer))))
        (funcall (contexture-tools-change--run-done run) nil "The user closed its output")
      (contexture-tools-emacs--in buffer
        (let* ((to (contexture-tools-change--run-to run))
               (next (progn (goto-char (min to (+ position contexture-tools-change--step)))
                            (min to (line-beginning-position 2)))))
          ;; Whatever the patterns of failures cannot match, the model gets its answer.
          (ignore-errors (contexture--inertly (compilation--ensure-parse next)))
          (goto-char position)
          (while (< (point) next)
            (when (contexture-sources--message-here) (push (point) failures))
            (forward-line))
          (if (or (= next to)
                  (nthcdr contexture-tools-change--most-listed failures))
              (contexture-tools-change--give run (nreverse failures))
            ;; Emacs does other things in between.
            (contexture--later #'contexture-tools-change--search run next failures)))))))

(defun contexture-tools-change--give (run failures)
  "Put FAILURES into the context, and then give the result of RUN.
FAILURES are positions in this buffer, which has the output."
  ;; What Emacs says above and below the output is no part of a failure.
  (narrow-to-region (contexture-tools-change--run-from run)
                    (contexture-tools-change--run-to run))
  (contexture-tools-change--put
   (let ((metadata (and failures (contexture-sources--error-metadata))))
     (mapcar (lambda (position) (contexture-sources--error-params position metadata))
             (seq-take failures contexture-tools-change--most-failures)))
   (apply-partially (contexture-tools-change--run-done run)
                    (contexture-tools-change--result run failures))))

(defun contexture-tools-change--put (params then)
  "Add items with PARAMS to this buffer's context, and then call THEN.
Each of PARAMS is for `add-item'.  The items of this buffer's last command are
removed from the context that has them."
  (let ((buffer (current-buffer))
        (ended (lambda (&rest _) (funcall then))))
    (pcase-let ((`(,manager . ,ids) contexture-tools-change--items))
      (setq contexture-tools-change--items nil)
      (if (not (or ids params)) (funcall then)
        (condition-case nil
            (contexture--with-layers
             (lambda ()
               (let ((to (contexture-adding-context)))
                 (contexture-request-batch-async
                  (append (mapcar (lambda (id) `(remove-items :manager ,manager :ids (,id))) ids)
                          (mapcar (lambda (it) `(add-item :manager ,to :brief t ,@it)) params))
                  :success (lambda (results)
                             (contexture--with-live-buffer buffer
                               (let ((added (contexture--pluck
                                             :result (nthcdr (length ids) results))))
                                 (setq contexture-tools-change--items
                                       (cons to (delq nil (contexture--pluck :id added))))))
                             (funcall then))
                  :error ended)))
             ended)
          ;; There is no server any more.
          ((contexture-error user-error) (funcall then)))))))

(defun contexture-tools-change--result (run failures)
  "Return the text that tells a model how RUN ended.
FAILURES are positions in this buffer, which has the output."
  (let ((contexture-tool-project (file-name-as-directory default-directory)))
    (string-join
     (delq nil
           (list (format "%s\n%s." (contexture-tools-change--run-command run)
                         (contexture-tools-change--exit-text run))
                 (and failures (contexture-tools-change--failures failures))
                 (contexture-tools-change--unsaved)
                 (let* ((from (contexture-tools-change--run-from run))
                        (to (contexture-tools-change--run-to run))
                        (beg (max from (- to contexture-tools-emacs--most-output)))
                        (text (buffer-substring-no-properties beg to)))
                   (when (string-search "\e" text)
                     (setq text (ansi-color-filter-apply text)))
                   (cond ((string-blank-p text) "It printed nothing.")
                         ((= beg from) (concat "Output:\n" text))
                         (t (concat "The end of the output:\n" text))))))
     "\n")))

(defun contexture-tools-change--exit-text (run)
  "Return a phrase for how RUN ended."
  (pcase-let ((`(,kind . ,code) (contexture-tools-change--run-exit run)))
    (concat (and (contexture-tools-change--run-stopped run)
                 (format "It was %s, and " (contexture-tools-change--run-stopped run)))
            (if (eq kind 'exit) (format "ended with exit status %s" code)
              (format "ended by signal %s" code)))))

(defun contexture-tools-change--failures (positions)
  "Return a text that lists the failures at POSITIONS in this buffer."
  (format "%s%s; the context has %s:\n%s"
          (contexture--count (length positions) "failure")
          (if (nthcdr contexture-tools-change--most-listed positions) " or more" "")
          (if (nthcdr contexture-tools-change--most-failures positions)
              (format "the first %d" contexture-tools-change--most-failures)
            (if (cdr positions) "them" "it"))
          (contexture-tools-emacs--list
           (mapcar #'contexture-tools-change--failure positions) "")))

(defun contexture-tools-change--failure (position)
  "Return the line for the failure at POSITION in this buffer."
  (pcase-let ((`(,file . ,line) (contexture-sources--error-place position))
              (text (save-excursion
                      (goto-char position)
                      (contexture--trim (buffer-substring-no-properties
                                         (point) (line-end-position))))))
    (if (or (null file) (string-search (contexture--last-name file) text))
        (concat "- " text)
      (format "- %s:%s: %s" (contexture-tools-emacs--name file) (or line "?") text))))

(defun contexture-tools-change--unsaved ()
  "Return a sentence about files of the project that are not saved, or nil."
  (when-let* ((unsaved (cl-remove-if-not #'buffer-modified-p (contexture-tools-emacs--buffers))))
    (format "It ran with these files as they are saved, not as they are in Emacs: %s"
            (mapconcat (lambda (buffer)
                         (contexture-tools-emacs--name (buffer-file-name buffer)))
                       unsaved ", "))))

;;;; The tools

(contexture-define-tool "propose_edit" #'contexture-tools-change--propose
  '((file "File of the project, or name of an open buffer")
    (new "The new text")
    (old "Text to replace, exactly as it is now; it must occur once.  \
Leave it out for a definition, or for a new file" :optional t)
    (definition "Name of the definition to replace, if old is left out" :optional t))
  :proposes
  :description "Proposes a change to a file in the user's editor, where the user accepts or \
rejects it, whole or in parts, and says what the user decided."
  :seconds 3600 :async t)

(contexture-define-tool "list_commands" #'contexture-tools-change--list-commands nil :reads
  :description "Lists the project's commands, such as those to compile and to test.")

(pcase-dolist
    (`(,name ,function ,what ,description)
     '(("run_command" contexture-tools-change--run-named
        "The command, whole, as list_commands gives it"
        "Runs one of the project's commands, and returns its exit status, its failures and the \
end of its output.")
       ("propose_command" contexture-tools-change--run
        "The command for the shell, in one line"
        "Runs a command that the user is asked about in the project's folder, and returns its \
exit status, its failures and the end of its output.")))
  (contexture-define-tool name function `((command ,what)) :changes
    :description description :touches "all that this command can change"
    :seconds 3600 :async t))

;;; A live Lisp image for models

;; Tools by which a model works in the Lisp image that SLIME or SLY is
;; connected to.  `lisp_look' looks things up, and asks no approval; the
;; other tools run code, and need the user's approval.
;;
;; What a model wrote goes to the image as a string, and is never read in
;; Emacs.  contexture-tools.lisp, which is sent to the image first, reads and
;; evaluates it there.  Emacs does not wait; an error opens no debugger, but
;; is the result.

(defconst contexture-tools-lisp--longest 20000
  "Maximum number of characters of a form or a name that a model writes.")

(defconst contexture-tools-lisp--grace 5
  "Number of seconds to wait for the end of a form that was stopped.")

(defconst contexture-tools-lisp--source
  (expand-file-name "contexture-tools.lisp"
                    (file-name-directory (or load-file-name buffer-file-name)))
  "File with the code that does the work of the tools in the image.")

(defvar contexture-tools-lisp--last 0
  "Number of the last call of an image.")

(defvar contexture-tools-lisp--calls nil
  "Calls of images that are not answered yet.")

(cl-defstruct (contexture-tools-lisp--call
               (:constructor contexture-tools-lisp--make-call) (:copier nil))
  "A call of the Lisp image at CONNECTION, a connection of CLIENT.
NUMBER is its number, and ARGUMENTS are its other arguments.  DONE is called
with its result.  TIMER will stop it; STOPPED is a sentence that says why it
was stopped, or nil."
  number arguments client connection done timer stopped)

;;;; Calls

(defun contexture-tools-lisp--start (done seconds &rest arguments)
  "Call the Lisp image with ARGUMENTS; call DONE with the result.
ARGUMENTS are those of `call' in contexture-tools.lisp after the number.  Stop
the call after SECONDS.  Return a function that stops it."
  (dolist (argument (cl-remove-if-not #'stringp arguments))
    (when (> (length argument) contexture-tools-lisp--longest)
      (error "An argument has %d characters, but at most %d are allowed"
             (length argument) contexture-tools-lisp--longest))
    (when (cl-some (lambda (it) (or (<= #xd800 it #xdfff) (> it #x10ffff))) argument)
      (error "An argument has something that is not a Unicode character")))
  (let* ((client (or (car (contexture-lisp--clients))
                     (error "Neither SLIME nor SLY is connected to a Lisp")))
         (call (contexture-tools-lisp--make-call
                :number (cl-incf contexture-tools-lisp--last) :arguments arguments
                :client client :connection (contexture-lisp--connection client)
                :done done)))
    (add-hook (contexture-lisp--client-close-hook client) #'contexture-tools-lisp--closed)
    (push call contexture-tools-lisp--calls)
    (setf (contexture-tools-lisp--call-timer call)
          (run-at-time seconds nil #'contexture-tools-lisp--stop call
                       (format "It took longer than %s, and was stopped"
                               (contexture--count seconds "second"))))
    (contexture-tools-lisp--send call)
    (apply-partially #'contexture-tools-lisp--stop call "It was stopped")))

(defun contexture-tools-lisp--send (call)
  "Send CALL to its Lisp image."
  (contexture-tools-lisp--evaluate-form
   call
   `(cl:if (cl:find-package "CONTEXTURE-TOOLS")
           (cl:funcall (cl:intern "CALL" "CONTEXTURE-TOOLS")
                       ,(contexture-tools-lisp--call-number call)
                       ,@(contexture-tools-lisp--call-arguments call))
           :missing)
   #'contexture-tools-lisp--answered))

(defun contexture-tools-lisp--evaluate-form (call form then)
  "Evaluate FORM in the Lisp image of CALL.
Then call THEN with CALL and the value; if the Lisp aborts, end CALL instead."
  (contexture-lisp--ask
   (contexture-tools-lisp--call-client call) 'send
   (contexture-tools-lisp--call-connection call) form "COMMON-LISP-USER" t
   (lambda (result)
     (contexture--later
      (lambda ()
        (condition-case problem
            (pcase result
              (`(:ok ,value) (funcall then call value))
              (_ (contexture-tools-lisp--finish
                  call nil (format "The Lisp aborted the evaluation: %s" (cadr result)))))
          (error (contexture-tools-lisp--finish call nil
                                                (error-message-string problem)))))))))

(defun contexture-tools-lisp--answered (call answer)
  "End CALL with ANSWER, from its Lisp image.
If that lacks the code of the tools, send it, and then CALL again."
  (pcase answer
    (:missing (contexture-tools-lisp--prepare call))
    (`(:ok (,result . ,failures) ,output)
     (contexture-tools-lisp--finish
      call (contexture-tools-lisp--text output (string-join (cons result failures) "\n\n"))
      nil failures))
    (`(:ok ,result ,output)
     (contexture-tools-lisp--finish call (contexture-tools-lisp--text output result)))
    (`(:failed ,problem ,output)
     (contexture-tools-lisp--finish call (contexture-tools-lisp--text output problem)))
    (`(:refused ,reason ,_) (contexture-tools-lisp--finish call nil reason))
    (`(:stopped ,where ,output)
     (contexture-tools-lisp--finish
      call nil (contexture-tools-lisp--text
                output (format "%s.\n%s" (contexture-tools-lisp--call-stopped call) where))))))

(defun contexture-tools-lisp--text (output result)
  "Return RESULT, on lines of its own after OUTPUT, the printed text."
  (concat output (if (string-match-p "[^\n]\\'" output) "\n" "") result))

(defun contexture-tools-lisp--prepare (call)
  "Send the code of the tools to the Lisp image of CALL, and then CALL again."
  (contexture-tools-lisp--evaluate-form
   call
   `(cl:let ((cl:*package* (cl:find-package "COMMON-LISP-USER"))
             (cl:*readtable* (cl:copy-readtable nil))
             (cl:*error-output* (cl:make-broadcast-stream)))
            (cl:handler-case
             (cl:with-input-from-string (stream ,(contexture-tools-lisp--code call))
                                        (cl:load stream)
                                        nil)
             (cl:error (problem) (cl:princ-to-string problem))))
   (lambda (call problem)
     (cond (problem
            (contexture-tools-lisp--finish
             call nil (format "The tools do not work in this Lisp: %s" problem)))
           ((contexture-tools-lisp--call-stopped call)
            (contexture-tools-lisp--finish
             call nil (concat (contexture-tools-lisp--call-stopped call)
                              ".\nThe evaluation had not begun.")))
           (t (contexture-tools-lisp--send call))))))

(defun contexture-tools-lisp--code (call)
  "Return the code of the tools for the Lisp image of CALL, as a string."
  (with-temp-buffer
    (insert-file-contents contexture-tools-lisp--source)
    (when (equal (contexture-lisp--client-prefix (contexture-tools-lisp--call-client call))
                 "swank")
      (pcase-dolist (`(,from ,to) '(("slynk-backend:" "swank/backend:") ("slynk" "swank")))
        (goto-char (point-min))
        (while (search-forward from nil t) (replace-match to t t))))
    (buffer-string)))

(defun contexture-tools-lisp--stop (call why)
  "Stop CALL; if it does not end within a few seconds, give up on it.
WHY is a sentence, without a full stop, that says why."
  (when (memq call contexture-tools-lisp--calls)
    (cancel-timer (contexture-tools-lisp--call-timer call))
    (setf (contexture-tools-lisp--call-stopped call) why
          (contexture-tools-lisp--call-timer call)
          (run-at-time contexture-tools-lisp--grace nil
                       #'contexture-tools-lisp--finish call nil
                       (concat why ", but it is still running; the user can interrupt it")))
    (contexture-tools-lisp--evaluate-form
     call
     ;; It may not be there yet.
     `(cl:ignore-errors
       (cl:funcall (cl:find-symbol "STOP" "CONTEXTURE-TOOLS")
                   ,(contexture-tools-lisp--call-number call))
       nil)
     #'ignore)))

(defun contexture-tools-lisp--finish (call &rest result)
  "End CALL, unless it has ended: call its function with RESULT as arguments."
  (when (memq call contexture-tools-lisp--calls)
    (setq contexture-tools-lisp--calls (delq call contexture-tools-lisp--calls))
    (cancel-timer (contexture-tools-lisp--call-timer call))
    (condition-case problem
        (apply (contexture-tools-lisp--call-done call) result)
      ;; What goes wrong with a result is the result; nobody else would tell the model.
      (error (funcall (contexture-tools-lisp--call-done call) nil
                      (error-message-string problem))))))

(defun contexture-tools-lisp--closed (connection)
  "End the calls of the Lisp image at CONNECTION, which has closed."
  (dolist (call contexture-tools-lisp--calls)
    (when (eq connection (contexture-tools-lisp--call-connection call))
      (contexture--later #'contexture-tools-lisp--finish
                         call nil "The connection to the Lisp closed before it answered"))))

;;;; Which Lisp the user is asked about

(defun contexture-tools-lisp--touches ()
  "Return a phrase for what a call can affect, which names the Lisp.
Another image has another phrase, even if it takes the place of the first."
  (if-let* ((client (car (contexture-lisp--clients)))
            (connection (contexture-lisp--connection client)))
      (format "all that the Lisp can: %s, pid %s"
              (contexture-lisp--implementation client connection)
              (contexture-lisp--ask client 'pid connection))
    "all that the Lisp can"))

;;;; What the tools do

(defun contexture-tools-lisp--evaluate (done form package &optional seconds)
  "Evaluate FORM in PACKAGE; call DONE with the output and the values.
Stop after SECONDS, by default 30.  Return a function that stops it."
  (contexture-tools-lisp--start done (contexture-tools-lisp--limit seconds 30)
                                package "EVALUATE" form))

;; Runs nothing of a model's: names and numbers go to the image as strings and numbers,
;; and nothing is read in Emacs.  What the image does with them is said above `look' in
;; contexture-tools.lisp.
(defun contexture-tools-lisp--look (done what name package &optional path)
  "Call DONE with what the Lisp image knows of NAME in PACKAGE.
WHAT, such as \"callers\", says what is wanted.  PATH, numbers in a string,
leads to a part of an inspected value.  Return a function that stops it."
  (unless (string-match-p "\\`[0-9 ]*\\'" (or path ""))
    (error "The path must consist of numbers"))
  (contexture-tools-lisp--start
   done 30 package "LOOK" what name
   `(cl:list ,@(mapcar #'string-to-number (split-string (or path ""))))))

(defun contexture-tools-lisp--compile (done file &optional definition form package)
  "Compile and load FILE, or its DEFINITION as in Emacs now, or FORM in PACKAGE.
Call DONE with the compiler's notes.  Return a function that stops it."
  (cond (form (contexture-tools-lisp--start
               done 120 (or package (error "Name the package of the form"))
               "COMPILE-TEXT" form "lisp_compile" 1 nil))
        ((null file) (error "Name a file, or give a form"))
        (definition
         (contexture-tools-emacs--in (contexture-tools-emacs--buffer file)
           (pcase (contexture-defun--named definition)
             (`((,beg . ,end))
              (contexture-tools-lisp--start
               done 120 (or (contexture--lisp-package beg) "COMMON-LISP-USER") "COMPILE-TEXT"
               (buffer-substring-no-properties beg end) (buffer-name) beg buffer-file-name))
             ('nil (error "%s is not defined in this file" definition))
             (_ (error "%s is defined more than once in this file; compile the file"
                       definition)))))
        (t (contexture-tools-lisp--start done 120 "COMMON-LISP-USER" "COMPILE-WHOLE"
                                         (contexture-tools-lisp--saved file)))))

(defun contexture-tools-lisp--saved (file)
  "Return the full name of FILE, of the project.
Signal an error if there is no such file, or its buffer is not saved."
  (let* ((name (contexture-tools-change--file file))
         (buffer (find-buffer-visiting name)))
    (cond ((and buffer (buffer-modified-p buffer))
           (error "%s is not saved in Emacs; compile a definition, or have the user save it" file))
          ((not (file-readable-p name)) (error "There is no file %s" file)))
    name))

(defun contexture-tools-lisp--test (done system &optional seconds)
  "Run the tests of SYSTEM, an ASDF system; call DONE with what failed.
Stop after SECONDS, by default 300.  Failures become items of the project's
context.  Return a function that stops the tests."
  (unless (string-match-p "\\`[[:alnum:]+_-][[:alnum:]./+_-]*\\'" system)
    (error "%s is not the name of an ASDF system" system))
  (let ((project (contexture-tools-emacs--project)))
    (contexture-tools-lisp--start
     (lambda (text &optional problem failures)
       (if problem (funcall done nil problem)
         (let ((then (apply-partially done text)))
           (with-current-buffer (get-buffer-create
                                 (format "*contexture: tests of %s*" system))
             (let ((inhibit-read-only t))
               (special-mode)
               (setq default-directory project)
               (erase-buffer)
               (insert (contexture--visible text t)))
             (contexture-tools-change--put
              (mapcar (lambda (failure)
                        (contexture-sources--params
                         :error :tool failure
                         (list :system system :project project
                               :language "text")))
                      failures)
              then)))))
     (contexture-tools-lisp--limit seconds 300) "COMMON-LISP-USER" "TEST" system project)))

(defun contexture-tools-lisp--limit (seconds default)
  "Return SECONDS, which a model asked for, or DEFAULT, but from 1 to 600."
  (min 600 (max 1 (or seconds default))))

;;;; The tools in a Lisp image

(defconst contexture-tools-lisp--package
  '(package "Name of the package in which to read, such as CL-USER")
  "The argument that names a package.")

(defun contexture-tools-lisp--define ()
  "Define the tools that work in a Lisp image."
  (require 'contexture-lisp)
  (pcase-dolist
      (`(,name ,function ,effect ,seconds ,arguments ,description)
       `(("lisp_look" contexture-tools-lisp--look :reads 60
          ((what "definitions, callers, callees, references, binds, sets, macroexpands or \
specializes (where NAME is defined, called, called from it, read, bound, set, expanded, \
specialized); describe (of a symbol, or of a package: what it exports), arglist, \
disassemble; apropos; or inspect (of a variable's value; * is \
the value of the last lisp_evaluate)")
           (name "Symbol (with its package, if that differs), (setf SYMBOL), or part of a name")
           ,contexture-tools-lisp--package
           (path "Numbers of the parts to go to when inspecting, such as \"2 0\"" :optional t))
          "Looks up in the running Lisp image.")
         ("lisp_evaluate" contexture-tools-lisp--evaluate :changes 660
          ((form "The forms to evaluate, in order")
           ,contexture-tools-lisp--package
           (seconds "Time limit, 30 if left out, 600 at most" :type integer :optional t))
          "Evaluates forms in the running Lisp image, and returns the output and the values of \
the last one, or the condition with restarts and backtrace.  (trace f) and (untrace) work: \
traces are part of the output.  (macroexpand-1 '(...)) expands a form.")
         ("lisp_compile" contexture-tools-lisp--compile :changes 180
          ((file "File of the project, unless there is a form" :optional t)
           (definition "Name of a definition in the file, which need not be saved; all of the \
file if left out" :optional t)
           (form "Form to compile in place of a file" :optional t)
           (package "Name of the form's package" :optional t))
          "Compiles a file, a definition or a form, loads it into the running Lisp image, and \
returns the compiler's notes.")
         ("lisp_test" contexture-tools-lisp--test :changes 660
          ((system "Name of the ASDF system")
           (seconds "Time limit, 300 if left out, 600 at most" :type integer :optional t))
          "Runs the tests of a system in the running Lisp image, by asdf:test-system, and \
returns their output and what failed, with backtraces.")))
    (contexture-define-tool name function arguments effect
      :description description :async t :seconds seconds
      :touches (and (eq effect :changes) #'contexture-tools-lisp--touches))))

(provide 'contexture-tools)
;;; contexture-tools.el ends here
