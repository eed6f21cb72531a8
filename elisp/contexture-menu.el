;;; contexture-menu.el --- A menu of all commands  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-menu' shows the commands with their keys, which are those of
;; `contexture-command-map', and the context they work on.  Its heading
;; shows the last known size; if a server runs, its answer updates the
;; heading.  The menu waits for that only a tenth of a second.
;;
;; `contexture-help' shows the manual: the node about the current buffer.
;;
;; Written for transient 0.3.7, which comes with Emacs 28, and later ones.

;;; Code:

(require 'transient)
(require 'contexture-marks)

(defvar Info-file-list-for-emacs)
(autoload 'Info-find-file "info")
(autoload 'Info-toc-nodes "info")
(autoload 'Info-index "info")
(autoload 'contexture-conversations--change-name "contexture-conversations")
(autoload 'contexture-conversations--params "contexture-conversations")
(autoload 'contexture-conversations--named-params "contexture-conversations")
(autoload 'contexture-sets--change-name "contexture-list")
(autoload 'contexture-sets--manager-to-undo "contexture-list")
(defvar contexture-tree--walks)

;;;; Options

(defclass contexture-menu--option (transient-lisp-variable)
  ((set-value :initform #'customize-set-variable)
   (empty :initarg :empty :initform "none"))
  "An option of the package, set as Customize sets it.")

(cl-defmethod transient-format-value ((option contexture-menu--option))
  "Return the value of OPTION as text, or the word for no value."
  (propertize (format "%s" (or (oref option value) (oref option empty))) 'face 'transient-value))

(defun contexture-menu--choose (prompt option)
  "Ask with PROMPT for one of the symbols that OPTION can be; return it.
Empty input means its present value."
  (let ((name (completing-read
               prompt
               (cl-loop for (kind . more) in (cdr (get option 'custom-type))
                        when (eq kind 'const) collect (symbol-name (car (last more))))
               nil t nil nil
               (let ((value (symbol-value option)))
                 (if (symbolp value) (symbol-name value) "")))))
    (if (string-empty-p name) (symbol-value option) (intern name))))

(transient-define-infix contexture-menu-add-to ()
  "Choose where commands add, until this Emacs ends."
  :class 'contexture-menu--option
  :variable 'contexture-add-to
  :description "add to"
  :reader (lambda (&rest _)
            (contexture-menu--choose "Commands add to: " 'contexture-add-to)))

(transient-define-infix contexture-menu-limit ()
  "Set the maximum number of tokens of a context, until this Emacs ends."
  :class 'contexture-menu--option
  :variable 'contexture-limit
  :description "limit"
  :reader (lambda (_prompt _initial history)
            (let ((text (read-string "Maximum tokens of a context (empty for no limit): "
                                     nil history)))
              (cond ((string-blank-p text) nil)
                    ((string-match-p "\\`[ \t]*[1-9][0-9]*[ \t]*\\'" text)
                     (string-to-number text))
                    (t (user-error "Type a number of tokens, such as 8000"))))))

(defun contexture-menu--models ()
  "Return a completion table of the providers, and of their models as they come in.
Emacs does not wait for the models."
  (let ((names (mapcar #'car contexture-providers)) models)
    (when (contexture-running-p)
      (dolist (name names)
        (contexture-request-async
         'list-providers (list :models t :provider name)
         :success (lambda (result)
                    (setq models (append models (contexture--model-names result))))
         :error #'ignore)))
    (contexture--table-of (lambda () (append names models)) 'contexture-model
                          (lambda (it) (contexture--model-about (car (member it models)))))))

(transient-define-infix contexture-menu-model ()
  "Choose the model for conversations that have none, until this Emacs ends."
  :class 'contexture-menu--option
  :variable 'contexture-model
  :empty "default"
  :description "model"
  :reader (lambda (_prompt _initial history)
            (let ((model (completing-read "Model or provider (empty for the server's default): "
                                          (contexture-menu--models)
                                          nil nil nil history "")))
              (and (not (string-blank-p model)) (contexture--trim model)))))

(transient-define-infix contexture-menu-format ()
  "Choose the format for copying and inserting, until this Emacs ends."
  :class 'contexture-menu--option
  :variable 'contexture-format
  :description "format"
  :reader (lambda (&rest _)
            (contexture-menu--choose "Copy and insert as: " 'contexture-format)))

;;;; The menu

;;;###autoload (autoload 'contexture-menu "contexture-menu" nil t)
(transient-define-prefix contexture-menu ()
  "Show the commands of Contexture, and the size of this buffer's context.
The keys are those of the variable `contexture-command-map'.  You can
type a prefix argument before any of them."
  [:description contexture-menu--heading
   ["Add"
    ("a" "what is at hand" contexture-add-dwim)
    ("r" "region" contexture-add-region)
    ("d" "definition" contexture-add-defun)
    ("b" "buffer" contexture-add-buffer)
    ("f" "file" contexture-add-file)
    ("s" "symbol" contexture-add-symbol)]
   [" "
    ("t" "directory" contexture-add-directory)
    ("P" "project" contexture-add-project)
    ("k" "latest kill" contexture-add-kill)
    ("e" "diagnostics" contexture-add-diagnostics)
    ("v" "changes (diff)" contexture-add-diff)
    ("o" "compile error" contexture-add-compilation)]
   ["See"
    ("l" "list" contexture-list)
    ("p" "preview" contexture-preview)
    ("w" "copy" contexture-copy)
    ("i" "insert" contexture-insert)
    ("m" "another context" contexture-switch)
    ("=" "compare with file" contexture-ediff)
    ("N" "send to agent" contexture-send-to-agent)
    ("M" contexture-mode :description contexture-menu--marks)]
   ["Change"
    ("x" "remove item" contexture-remove)
    ("Z" "keep a copy" contexture-keep-copy)
    ("c" "clear" contexture-clear)
    ("u" contexture-undo :description contexture-menu--undo)
    ("U" contexture-redo :description contexture-menu--redo)
    ("g" "refresh" contexture-refresh)
    ("C" "limit of items" contexture-set-limit)
    ("q" "stop adding" contexture-cancel :if contexture-menu--walking-p)]]
  [["Sets"
    ("S" "save" contexture-save-set)
    ("L" "load" contexture-load-set)
    ("D" "drop" contexture-drop-set)]
   ["Conversation"
    ("n o" "open" contexture-conversation-open)
    ("n v" "dashboard" contexture-dashboard)
    ("n e" "what was sent" contexture-explain)
    ("n l" "all agents" contexture-sessions)
    ("n ?" "more" contexture-conversation-menu)]
   ["Server"
    ("J" "join another" contexture-connect)
    ("Q" "leave" contexture-disconnect :if contexture-running-p)]
   [" "
    ("I" "about it" contexture-info)
    ("K" "set up a model" contexture-configure-provider)
    ("H" "check set-up" contexture-doctor)
    ("h" "manual" contexture-help)]]
  [["Models"
    ("R" "conversation" contexture-conversation)
    ("A" "ask about code" contexture-send-region)
    ("Y" "insert answer" contexture-insert-last-response)]
   [" "
    ("E" "explain code" contexture-explain-code)
    ("W" "rewrite code" contexture-rewrite)
    ("F" "fix error" contexture-fix-error)]
   [" "
    ("O" "document" contexture-document-defun)
    ("V" "review" contexture-review-code)
    ("T" "write tests" contexture-write-tests)]
   ["Options"
    ("-a" contexture-menu-add-to)
    ("-l" contexture-menu-limit)
    ("-m" contexture-menu-model)
    ("-f" contexture-menu-format)]]
  ["Lisp image" :if contexture-menu--lisp-p
   [("z s" "definition" contexture-lisp-add-symbol)
    ("z h" "REPL history" contexture-lisp-add-history)]
   [("z e" "error" contexture-lisp-add-error)
    ("z x" "explain error" contexture-lisp-explain-error)]
   [("z i" "inspector" contexture-lisp-add-inspector)
    ("z n" "compiler note" contexture-lisp-add-note)]]
  (interactive)
  (contexture-menu--fetch)
  (contexture-menu--show 'contexture-menu))

;;;###autoload (autoload 'contexture-conversation-menu "contexture-menu" nil t)
(transient-define-prefix contexture-conversation-menu ()
  "Show the commands for conversations with models.
The keys are those behind `n' in the variable `contexture-command-map'.
You can type a prefix argument before any of them."
  [["Conversation"
    ("o" "open" contexture-conversation-open)
    ("n" "begin" contexture-conversation-new)
    ("s" "switch" contexture-conversation-make-current)
    ("r" "rename" contexture-conversation-rename)
    ("d" "delete" contexture-conversation-delete)
    ("D" "bring back" contexture-conversation-bring-back)
    ("f" "fork" contexture-conversation-fork)]
   ["See"
    ("v" "dashboard" contexture-dashboard)
    ("w" "in a browser" contexture-dashboard-browse)
    ("e" "what was sent" contexture-explain)
    ("V" "notes" contexture-conversation-notes)
    ("t" "transcript" contexture-conversation-transcript)
    ("/" "search all" contexture-conversation-search)
    ("x" "export" contexture-conversation-export)
    ("i" "import" contexture-import-sessions)
    ("l" "all agents" contexture-sessions)]
   ["Say"
    ("a" "add a message" contexture-conversation-add-message)
    ("A" "add the region" contexture-conversation-add-region)
    ("C" "settings" contexture-conversation-set)]
   ["Keep it short"
    ("p" "leave messages out" contexture-conversation-leave-out)
    ("S" "shorten" contexture-conversation-shorten)
    ("c" "name this turn" contexture-conversation-name-turn)
    ("b" "go back to a turn" contexture-conversation-go-back)
    ("u" contexture-conversation-undo :description contexture-menu--session-undo)
    ("U" contexture-conversation-redo :description contexture-menu--session-redo)
    ("R" "undo several" contexture-conversation-undo-to)]]
  (interactive)
  (contexture-menu--fetch-session-changes)
  (contexture-menu--show 'contexture-conversation-menu))

(defun contexture-menu--show (menu)
  "Show MENU, a symbol, without loading the files of its commands.
Transient loads the file of each command that is an autoload, which is slow.
So the commands are bound to another function while it prepares the menu."
  (let ((commands (cl-loop for command in (apropos-internal "\\`contexture-" #'commandp)
                           for function = (symbol-function command)
                           when (autoloadp function)
                           collect (cons command function))))
    (unwind-protect
        (progn (pcase-dolist (`(,command . ,_) commands)
                 (fset command #'ignore))
               (transient-setup menu))
      (pcase-dolist (`(,command . ,autoload) commands)
        (fset command autoload)))))

;;;; The heading

(defun contexture-menu--heading ()
  "Return the heading: the label of this buffer's context, and its size if known."
  (let ((context (contexture--known-context)))
    (format "Context of %s: %s" (contexture--label-of-text context)
            (pcase (contexture--totals-of context)
              (`(,items . ,tokens)
               (if contexture-limit
                   (format "%s, %d of %s (%d %%)" (contexture--count items "item") tokens
                           (contexture--count contexture-limit "token")
                           (/ (* 100 tokens) (max 1 contexture-limit)))
                 (contexture--size items tokens)))
              (_ "its size appears after the first command")))))

(defun contexture-menu--marks ()
  "Return the label of `contexture-mode', which shows or hides marks."
  (if contexture-mode "hide marks" "show marks"))

(defun contexture-menu--lisp-p ()
  "Return non-nil if SLIME or SLY is connected to a Lisp.
Load nothing if neither is loaded."
  (and (or (featurep 'slime) (featurep 'sly))
       (contexture-lisp-connected-p)))

(defun contexture-menu--walking-p ()
  "Return non-nil if a directory is being added."
  (bound-and-true-p contexture-tree--walks))

;;;; What undo and redo would do

(defconst contexture-menu--label-length 36
  "Maximum length, in characters, of the name of a change in a label.")

(defconst contexture-menu--label-column 71
  "Approximate column of the frame at which the names of changes begin.")

(defvar contexture-menu--changes nil
  "What undo and redo would take next in the context: operations of the server.")

(defvar contexture-menu--session-changes nil
  "What undo and redo would take next in this buffer's conversation.")

(defun contexture-menu--step-label (label name)
  "Return LABEL followed by NAME, the name of a change, shortened.
Return LABEL alone if NAME is nil."
  (let ((room (- (frame-width) contexture-menu--label-column)))
    ;; A name cut to fewer than 20 characters could not be understood.
    (setq room (min contexture-menu--label-length
                    (if (< room 20) contexture-menu--label-length room)))
    (cond ((null name) label)
          ((<= (length name) room)
           (concat label ": " name))
          (t                            ; the ends tell most
           (let ((half (/ (1- room) 2)))
             (concat label ": " (substring name 0 half) "…"
                     (substring name (- half))))))))

(defun contexture-menu--next (way operations)
  "Return the one of OPERATIONS that WAY, `:undo' or `:redo', would take next."
  (cl-find way operations :key (lambda (it) (plist-get it :next))))

(defun contexture-menu--change-label (label way)
  "Return LABEL followed by the name of the context's change that WAY takes.
WAY is `:undo' or `:redo'."
  (let ((change (contexture-menu--next way contexture-menu--changes)))
    (contexture-menu--step-label
     label (and change
                (contexture-sets--change-name (plist-get change :method) change)))))

(defun contexture-menu--undo ()
  "Return the label of `contexture-undo', with what it would undo."
  (contexture-menu--change-label "undo" :undo))

(defun contexture-menu--redo ()
  "Return the label of `contexture-redo', with what it would redo."
  (contexture-menu--change-label "redo" :redo))

(defun contexture-menu--session-label (label way)
  "Return LABEL followed by the name of the conversation's change that WAY takes.
WAY is `:undo' or `:redo'."
  (let ((change (contexture-menu--next way contexture-menu--session-changes)))
    (contexture-menu--step-label
     label (and change
                (contexture-conversations--change-name (plist-get change :method))))))

(defun contexture-menu--session-undo ()
  "Return the label of `contexture-conversation-undo', with what it would undo."
  (contexture-menu--session-label "undo" :undo))

(defun contexture-menu--session-redo ()
  "Return the label of `contexture-conversation-redo', with what it would redo."
  (contexture-menu--session-label "redo" :redo))

;;;; What the server knows

(defvar contexture-menu--patience 0.1
  "Maximum number of seconds that a menu waits for the server.")

(defun contexture-menu--ask (function)
  "Call FUNCTION, which asks the server, if a server is connected.
If the server is slow or refuses, the menu shows what is known already."
  (when (contexture-running-p)
    (let ((contexture-request-timeout contexture-menu--patience))
      (condition-case nil (funcall function)
        ((contexture-error user-error) nil)))))

(defun contexture-menu--fetch ()
  "Ask for the size of this buffer's context, and what undo and redo would do."
  (setq contexture-menu--changes nil)
  (contexture-menu--ask
   (lambda ()
     (let* ((context (contexture-current-context))
            (managers (ensure-list context))
            (changing (contexture-sets--manager-to-undo)))
       (pcase-let ((`(,changes ,items . ,sizes)
                    (contexture-request-batch
                     `((list-operations :manager ,changing :next t)
                       (list-items ,@(contexture--context-params context) :brief t)
                       ,@(mapcar (lambda (manager) `(list-items :manager ,manager :count-only t))
                                 managers)))))
         (setq contexture-menu--changes
               (plist-get changes :result))
         (cl-loop for manager in managers
                  for size in sizes
                  for summary = (plist-get size :result)
                  when summary
                  do (contexture--note-totals manager summary))
         (unless (plist-get items :error)
           (contexture--note-items context (plist-get items :result))))))))

(defun contexture-menu--fetch-session-changes ()
  "Ask what undo and redo would do to the conversation."
  (setq contexture-menu--session-changes nil)
  (contexture-menu--ask
   (lambda ()
     (setq contexture-menu--session-changes
           (contexture-request 'list-operations
                               (append (contexture-conversations--named-params) '(:next t)))))))

;;;; The manual

(defconst contexture-help--nodes
  '((contexture-list-mode . "The list")
    (contexture-list-edit-mode . "The list")
    (contexture-preview-mode . "Preview")
    (contexture-map-mode . "The map")
    (contexture-conversation-mode . "Asking")
    (contexture-conversation-transcript-mode . "Keeping conversations")
    (contexture-conversation-search-mode . "Keeping conversations")
    (contexture-conversation-notes-mode . "Notes")
    (contexture-dashboard-mode . "In Emacs")
    (contexture-explain-mode . "Why sent")
    (contexture-sessions-mode . "Sessions of agents")
    (contexture-hub-mode . "With others")
    (contexture-tools-question-mode . "Deciding")
    (contexture-doctor-mode . "Troubleshooting")
    (contexture-info-mode . "Troubleshooting"))
  "The nodes of the manual about our buffers, by major or minor mode.")

(defun contexture-help--node ()
  "Return the name of the manual's node about this buffer."
  (or (cl-loop for (mode . node) in contexture-help--nodes
               when (or (derived-mode-p mode) (and (boundp mode) (symbol-value mode)))
               return node)
      "Top"))

;;;###autoload (autoload 'contexture-help "contexture-menu" nil t)
(defun contexture-help (&optional topic)
  "Show the manual at TOPIC, a node or what its index has.
Without TOPIC, that is the node about this buffer.  With a prefix
argument, ask for TOPIC."
  (interactive
   (list (and current-prefix-arg
              (completing-read "Manual of Contexture, about: "
                               (mapcar #'car (Info-toc-nodes "contexture"))
                               nil nil nil 'contexture-help-history))))
  (unless (Info-find-file "contexture" t)
    (user-error "The manual is not installed; `make docs' in the sources makes it"))
  (let* ((wanted (or topic (contexture-help--node)))
         (node (car (assoc-string wanted (Info-toc-nodes "contexture") t))))
    (info (format "(contexture)%s" (or node "Top")))
    ;; Then C-h F and C-h K find all commands in this manual.
    (add-to-list 'Info-file-list-for-emacs "contexture")
    (unless node (Info-index wanted))))

(provide 'contexture-menu)
;;; contexture-menu.el ends here
