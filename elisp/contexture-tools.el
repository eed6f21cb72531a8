;;; contexture-tools.el --- Tools of Emacs for models  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A tool is a function of Emacs that models may call.
;; `contexture-define-tool' defines one; contexture-tools-emacs.el has
;; those that read in Emacs, contexture-tools-change.el those that
;; change, contexture-tools-lisp.el those in a Lisp image.  Each is off
;; until `contexture-tools' names a place for it.  This file tells the
;; server which tools are on, calls them when a model does, and sends back
;; what they return.  The server asks before a model calls a tool that
;; changes something.
;;
;; A tool that reads is interrupted when the user types, and called again
;; soon after: it never keeps Emacs from its user.

;;; Code:

(require 'cl-lib)
(require 'json)
(require 'contexture-rpc)
(eval-when-compile (require 'subr-x))

(declare-function jsonrpc-async-request "jsonrpc" (connection method params &rest args))
(declare-function contexture--project-root "contexture" ())
(defvar contexture--own-call)
(defvar contexture-repl--session)

(cl-defstruct (contexture-tools--tool (:constructor contexture-tools--make-tool)
                                      (:copier nil))
  "A tool; see `contexture-define-tool'."
  name function arguments effect description touches seconds async)

(cl-defstruct (contexture-tools--call (:constructor contexture-tools--make-call)
                                      (:copier nil))
  "A call of TOOL with VALUES, for a session of the folder PROJECT.
NUMBER is the server's.  TIMER will run it.  CANCEL, a function or nil,
ends it once it runs."
  number tool values project timer cancel)

(defvar contexture-tool-project nil
  "Folder of the project of the session whose model calls a tool.
It is nil while no tool runs, and if the session has no project.")

(defconst contexture-tools--longest-result 65536
  "Maximum number of characters of a result.  A model sees no more bytes.")

(defconst contexture-tools--pause 0.2
  "Number of seconds until a tool that the user interrupted is called again.")

(defvar contexture-tools--defined nil
  "The tools, the one defined last first.")

(defvar contexture-tools--calls (make-hash-table)
  "Hash table from the number of each open call to the call.")

(defvar contexture-tools--timer nil
  "Timer that will tell the server of a change, or nil.")

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
typing interrupts it, so it must not change anything.  One that proposes
asks the user itself, and changes nothing before that.

FUNCTION returns the result, a string, or signals an error, which the
model is told.  If ASYNC is non-nil, FUNCTION has one more argument, the
first: a function to be called with the result, or with nil and a string
that says what went wrong.  It then returns at once a function that ends
the work, or nil.

DESCRIPTION tells models what the tool does; it defaults to FUNCTION's
documentation.  TOUCHES is a phrase for what calls can reach, for the
user who is asked.  SECONDS limits the time of a call.

While FUNCTION runs, `contexture-tool-project' is the folder of the
session's project.  Models cannot call the tool before `contexture-tools'
has it."
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
  "Return the tool with NAME, or nil."
  (cl-find name contexture-tools--defined
           :key #'contexture-tools--tool-name :test #'equal))

;;;; Turning on and off

(defun contexture-tools--load ()
  "Define the tools that Emacs brings."
  (require 'contexture-tools-emacs)
  (require 'contexture-tools-change)
  (when (or (featurep 'slime) (featurep 'sly))
    (require 'contexture-tools-lisp)))

(defun contexture-tools--places (tool)
  "Return the places where TOOL is on, as in `contexture-tools'."
  (cl-loop for (name place) in contexture-tools
           when (if (eq name t) (eq (contexture-tools--tool-effect tool) :reads)
                  (equal name (contexture-tools--tool-name tool)))
           collect place))

(defun contexture-tools--names ()
  "Return the names of the tools that are on somewhere."
  (mapcar #'contexture-tools--tool-name
          (cl-remove-if-not #'contexture-tools--places
                            (reverse contexture-tools--defined))))

;;;###autoload
(defun contexture-tools-on (tool place)
  "Let models call TOOL in PLACE, until Emacs ends.
TOOL is a name, or t for all tools that only read.  PLACE is t for
everywhere, (session . ID) or (project . FOLDER).  To keep this, customize
`contexture-tools'."
  (interactive
   (progn
     (contexture-tools--load)
     (let ((tool (completing-read
                  "Tool that models may call: "
                  (cons "all that read" (mapcar #'contexture-tools--tool-name
                                                contexture-tools--defined))
                  nil t nil nil "all that read")))
       (list (or (equal tool "all that read") tool) (contexture-tools--read-place)))))
  (unless (or (eq tool t) (contexture-tools--named tool))
    (user-error "There is no tool %s" tool))
  (cl-pushnew (list tool place) contexture-tools :test #'equal)
  (contexture-tools--changed)
  (contexture--message "Models may call %s %s" (if (eq tool t) "all tools that read" tool)
                       (contexture-tools--place-text place)))

;;;###autoload
(defun contexture-tools-off (&optional entry)
  "Take ENTRY of `contexture-tools' back; nil means all."
  (interactive
   (let ((choices (cl-loop for entry in contexture-tools
                           collect (cons (contexture-tools--entry-text entry) entry))))
     (unless choices (user-error "Models may call none of Emacs's tools"))
     (list (cdr (assoc (completing-read "Turn off: " (cons "all" choices) nil t
                                        nil nil "all")
                       choices)))))
  (setq contexture-tools (and entry (remove entry contexture-tools)))
  (contexture-tools--changed)
  (contexture--message "Models may call %s"
                       (if contexture-tools
                           (mapconcat #'contexture-tools--entry-text contexture-tools "; ")
                         "none of Emacs's tools")))

(defun contexture-tools--entry-text (entry)
  "Return ENTRY of `contexture-tools' as words."
  (format "%s %s" (if (eq (car entry) t) "all that read" (car entry))
          (contexture-tools--place-text (cadr entry))))

(defun contexture-tools--place-text (place)
  "Return PLACE, as in `contexture-tools', as words."
  (pcase place
    (`(session . ,id) (format "in the session %s" id))
    (`(project . ,folder) (format "in the project %s" (abbreviate-file-name folder)))
    (_ "everywhere")))

(defun contexture-tools--read-place ()
  "Ask for a place, as in `contexture-tools'."
  (pcase (completing-read "Where: " '("this session" "this project" "everywhere")
                          nil t nil nil "this session")
    ("this session" (cons 'session (contexture-tools--session)))
    ("this project" (cons 'project (or (contexture--project-root)
                                       (user-error "This buffer is in no project"))))
    (_ t)))

(defun contexture-tools--session ()
  "Return the id of this buffer's session, or else of the current one."
  (or (plist-get (bound-and-true-p contexture-repl--session) :id)
      (plist-get (contexture-request 'current-session) :id)
      (user-error "No session is open")))

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
What an earlier server wanted is over."
  (contexture-tools--drop-all)
  (contexture-tools--tell connection))

(defun contexture-tools--drop-all ()
  "End all calls, since the server that made them was left."
  (mapc #'contexture-tools--drop (hash-table-values contexture-tools--calls)))

(defun contexture-tools--tell (connection)
  "Tell the server of CONNECTION which tools are on."
  (contexture-tools--load)
  (dolist (hook '(slime-connected-hook sly-connected-hook))
    (add-hook hook #'contexture-tools--changed))
  (if contexture-tools
      (contexture-watch #'contexture-tools--told)
    (contexture-unwatch #'contexture-tools--told))
  (add-hook 'contexture-disconnected-hook #'contexture-tools--drop-all)
  (let ((contexture--own-call t))
    (jsonrpc-async-request
     connection 'register-tools
     (list :tools (cl-loop for tool in (reverse contexture-tools--defined)
                           for places = (contexture-tools--places tool)
                           when places
                           collect (contexture-tools--params tool places)))
     :timeout nil :success-fn #'ignore
     :error-fn (apply-partially #'contexture--later #'contexture-show-error))))

(defun contexture-tools--params (tool places)
  "Return how the server is told of TOOL, which is on in PLACES."
  (list :name (contexture-tools--tool-name tool)
        :description (contexture-tools--tool-description tool)
        :schema (contexture-tools--schema tool)
        ;; The server does not ask where Emacs does.
        :effect (if (eq (contexture-tools--tool-effect tool) :changes) :changes :reads)
        :touches (contexture-tools--tool-touches tool)
        :seconds (contexture-tools--tool-seconds tool)
        :sessions (cl-loop for place in places
                           when (eq (car-safe place) 'session) collect (cdr place))
        :projects (cl-loop for place in places
                           when (eq (car-safe place) 'project)
                           collect (expand-file-name (cdr place)))
        :everywhere (and (memq t places) t)))

(defun contexture-tools--schema (tool)
  "Return the JSON Schema of the arguments of TOOL, as JSON."
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
  "Do what the server's notification METHOD with PARAMS asks for."
  (pcase method
    ('tool-called (contexture-tools--called params))
    ('tool-cancelled
     (when-let* ((call (gethash (plist-get params :call) contexture-tools--calls)))
       (contexture-tools--drop call)))))

(defun contexture-tools--called (params)
  "Run the tool that PARAMS, from the server, name, as soon as Emacs waits."
  (let ((number (plist-get params :call))
        (tool (contexture-tools--named (plist-get params :tool))))
    (condition-case problem
        (if (not (and tool (contexture-tools--places tool)))
            (error "The user turned this tool off")
          (let ((call (contexture-tools--make-call
                       :number number :tool tool :project (plist-get params :project)
                       :values (contexture-tools--values
                                tool (plist-get params :arguments)))))
            (puthash number call contexture-tools--calls)
            (setf (contexture-tools--call-timer call)
                  (contexture--later #'contexture-tools--run call))))
      (error (contexture-tools--give number :error (error-message-string problem))))))

(defun contexture-tools--values (tool text)
  "Return the values of the arguments of TOOL that TEXT, JSON, has."
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
             do (error "The argument %s must be a %s" name type)
             collect value)))

(defun contexture-tools--run (call)
  "Run CALL.  If the user interrupts it and it only reads, try again later."
  (setf (contexture-tools--call-timer call) nil)
  (let ((tool (contexture-tools--call-tool call)))
    (pcase (if (and (eq (contexture-tools--tool-effect tool) :reads)
                    (not (contexture-tools--tool-async tool)))
               (while-no-input (contexture-tools--outcome call))
             (with-local-quit (contexture-tools--outcome call)))
      (`(result ,text) (contexture-tools--finish call :content text))
      (`(problem ,text) (contexture-tools--finish call :error text))
      ('nil (contexture-tools--finish call :error "The user interrupted it"))
      ('t (setf (contexture-tools--call-timer call)
                (run-at-time contexture-tools--pause nil #'contexture-tools--run call))))))

(defun contexture-tools--outcome (call)
  "Call the function of CALL.
Return (result TEXT), (problem TEXT), or (started) if it goes on."
  (let* ((tool (contexture-tools--call-tool call))
         (project (contexture-tools--call-project call))
         (contexture-tool-project (and project (file-name-as-directory project)))
         (function (contexture-tools--tool-function tool))
         ;; A question would make the user wait for a model.
         (inhibit-interaction (eq (contexture-tools--tool-effect tool) :reads)))
    (condition-case problem
        (with-temp-buffer
          (setq default-directory (or contexture-tool-project "/"))
          (if (contexture-tools--tool-async tool)
              (contexture-tools--start call function)
            (list 'result (contexture-tools--text
                           (apply function (contexture-tools--call-values call))))))
      (error (list 'problem (error-message-string problem))))))

(defun contexture-tools--start (call function)
  "Start CALL by FUNCTION, which goes on after it returns."
  (let ((cancel (apply function
                       (lambda (text &optional problem)
                         (contexture-tools--finish call (if problem :error :content)
                                                   (or problem text)))
                       (contexture-tools--call-values call))))
    (when (functionp cancel)
      (setf (contexture-tools--call-cancel call) cancel)))
  '(started))

(defun contexture-tools--text (result)
  "Return RESULT, what a tool returned, or signal an error if it is no string."
  (if (stringp result) result
    (error "The tool returned no text, but %s" (type-of result))))

(defun contexture-tools--finish (call key text)
  "End CALL with TEXT, which KEY says is `:content' or `:error'."
  (let ((number (contexture-tools--call-number call)))
    (when (eq (gethash number contexture-tools--calls) call)
      (remhash number contexture-tools--calls)
      (contexture-tools--give number key text))))

(defun contexture-tools--drop (call)
  "End CALL, whose result is no longer wanted."
  (remhash (contexture-tools--call-number call) contexture-tools--calls)
  (when-let* ((timer (contexture-tools--call-timer call)))
    (cancel-timer timer))
  (when-let* ((cancel (contexture-tools--call-cancel call)))
    (with-demoted-errors "Contexture: %S" (funcall cancel))))

(defun contexture-tools--give (number key text)
  "Send TEXT as the KEY, `:content' or `:error', of the call NUMBER.
If the server was left, nobody waits for it."
  (when (contexture-running-p)
    (let ((contexture--own-call t))
      (contexture-request-async
       'give-result (list :call number key (contexture-tools--cut text))
       :error #'ignore))))

(defun contexture-tools--cut (text)
  "Return TEXT without properties, and no longer than a model can see."
  (let ((most contexture-tools--longest-result))
    (if (<= (length text) most) (substring-no-properties text)
      (format "%s\n... (%d of %d characters)" (substring-no-properties text 0 (- most 80))
              (- most 80) (length text)))))

(provide 'contexture-tools)
;;; contexture-tools.el ends here
