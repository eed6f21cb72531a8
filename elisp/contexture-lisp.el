;;; contexture-lisp.el --- Context from a running Lisp, through SLIME and SLY  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Adds what a Lisp image knows to the context: definitions, interactions
;; of the REPL, errors, inspected objects and the compiler's notes.  Both
;; clients share all code but their own names for things, which come last.
;; Loading this needs neither client.

;;; Code:

(require 'seq)
(require 'contexture)
(eval-when-compile (require 'subr-x))

(declare-function contexture--tame-atoms "contexture-rpc" (data))
(declare-function contexture--plain "contexture-rpc" (value))
(declare-function contexture-mention-mode "contexture-mention" (&optional arg))
(declare-function contexture-live--push-and-wait "contexture-marks" ())
(declare-function slime-autodoc-mode "ext:slime-autodoc" (&optional arg))
(declare-function slime-connection-output-buffer "ext:slime-repl" t t)
(declare-function sly-autodoc-mode "ext:sly-autodoc" (&optional arg))
(declare-function sly-current-connection "ext:sly" ())
(declare-function sly-mrepl--find-buffer "ext:sly-mrepl" (&optional connection thread))
(declare-function sly-mrepl-shortcut "ext:sly-mrepl" ())
(defvar contexture-slime--client)
(defvar contexture-sly--client)
(defvar slime-net-processes)
(defvar sldb-condition)
(defvar sldb-restarts)
(defvar sly-db-condition)
(defvar sly-db-restarts)
(defvar sly-net-processes)
(defvar slime-autodoc-mode)
(defvar sly-autodoc-mode)
(autoload 'contexture-symbol--close-new "contexture-sources")
(autoload 'contexture-sources--add-all "contexture-sources")
(autoload 'contexture-add-compilation "contexture-sources" nil t)
(autoload 'contexture-sources--buffer-metadata "contexture-sources")
(autoload 'contexture-sources--params "contexture-sources")
(autoload 'contexture-defun-at-point "contexture-code")
(autoload 'contexture-conversation-code--clean "contexture-conversation")
(autoload 'contexture-conversation-code--idle "contexture-conversation")
(autoload 'contexture-conversation-code--show "contexture-conversation")
(autoload 'contexture-conversation-code--submit "contexture-conversation")

;;; Add what a running Lisp knows

;; What `contexture-slime' and `contexture-sly' share: calls to a Lisp
;; image, the locations of its definitions, and the commands that use
;; the client that is connected.  Loading this needs neither client.
;;
;; Calls to an image never wait, except the completion of a name, which
;; ends at the next key.  Calls catch their errors in the image, since an
;; error would open a debugger.

(defcustom contexture-lisp-key "C-a"
  "The key for adding to the context, behind the prefix of SLIME or SLY.
It is a string for `kbd', and is bound while `contexture-slime-mode' or
`contexture-sly-mode' is on.  After a change, turn the mode off and on
again."
  :type 'string
  :group 'contexture)

(defcustom contexture-lisp-keep-default t
  "Whether source buffers stay with their Lisp when you connect to Contexture.
Otherwise SLIME and SLY make the connection to Contexture the default one,
as they do with each new connection.  This needs `contexture-slime-mode' or
`contexture-sly-mode'."
  :type 'boolean
  :group 'contexture)

(defcustom contexture-lisp-compile 'ask
  "Whether to compile a definition once you accept a change to it.
It is compiled in the Lisp that SLIME or SLY is connected to."
  :type '(choice (const :tag "Ask" ask)
                 (const :tag "Always" t)
                 (const :tag "Never" nil))
  :group 'contexture)

(cl-defstruct (contexture-lisp--client (:constructor contexture-lisp--make-client)
                                       (:copier nil))
  "A client of Lisp images: its names and its functions."
  (feature nil :documentation "Feature that it provides, a symbol.")
  (name nil :documentation "Its name, as shown to the user.")
  (prefix nil :documentation "Package of its functions in the image.")
  (completions nil :documentation "Function in the image that completes a symbol.")
  (connections nil :documentation "Function returning all open connections.")
  (current nil :documentation "Function returning this buffer's connection, or nil.")
  (type nil :documentation "Function returning the kind of Lisp at a connection.")
  (version nil :documentation "Function returning the version of the Lisp at a connection.")
  (pid nil :documentation "Function returning the number of the process at a connection.")
  (send nil :documentation "Function evaluating a form: \
(CONNECTION FORM PACKAGE THREAD CONTINUATION).")
  (package nil :documentation "Function returning the package at point, or that of a connection.")
  (symbol nil :documentation "Function returning the name of the symbol at point, or nil.")
  (filename nil :documentation "Function returning Emacs's name for a file of the image.")
  (offset nil :documentation "Function returning the position of a location in this buffer.")
  (repl-mode nil :documentation "The major mode of its REPLs.")
  (repl nil :documentation "Function returning the REPL of a connection, or nil.")
  (kind nil :documentation "Function from a position to `prompt', `input', `output' or nil.")
  (buffer-connection nil :documentation "Function returning this buffer's own connection.")
  (debugger-mode nil :documentation "The major mode of its debuggers.")
  (debugger nil :documentation "Function returning the facts of this debugger's error, a plist.")
  (inspector-mode nil :documentation "The major mode of its inspectors.")
  (note-property nil :documentation "The property of overlays of compiler notes.")
  (prefix-map nil :documentation "Function returning the keymap behind its prefix.")
  (repl-hook nil :documentation "Hook that runs in new REPLs.")
  (event-hook nil :documentation "Hook that runs with a message before it is handled.")
  (close-hook nil :documentation "Hook that runs with a connection that closes.")
  (connected nil :documentation "Function called once a connection is complete.")
  (autodoc nil :documentation "Function returning whether argument lists are shown; \
it also switches them."))

(defun contexture-lisp--new-client (feature name prefix &rest slots)
  "Return the client FEATURE, called NAME, with SLOTS.
PREFIX is the package of its functions in the image.  The functions and
variables of SLIME and SLY differ only in the beginning of their names."
  (cl-flet* ((its (suffix) (intern (format "%s-%s" feature suffix)))
             (value-of (suffix) (apply-partially #'symbol-value (its suffix))))
    (apply
     #'contexture-lisp--make-client
     :feature feature :name name :prefix prefix
     :connections (value-of 'net-processes)
     :current (its 'current-connection)
     :type (its 'lisp-implementation-type)
     :version (its 'lisp-implementation-version)
     :pid (its 'pid)
     :send (lambda (connection form package thread continuation)
             (funcall (its 'dispatch-event)
                      (list :emacs-rex form package thread
                            (lambda (result) (funcall continuation (contexture-lisp--told result))))
                      connection))
     :package (lambda (connection)
                (cl-progv (list (its 'dispatching-connection)) (list connection)
                  (funcall (its 'current-package))))
     :symbol (its 'symbol-at-point)
     :filename (its 'from-lisp-filename)
     :offset (its 'location-offset)
     :buffer-connection (value-of 'buffer-connection)
     :debugger (lambda ()
                 (append (contexture-lisp--debugger-facts)
                         (list :thread (symbol-value (its 'current-thread))
                               :connection
                               (symbol-value (its 'buffer-connection))
                               :buffer (buffer-name))))
     :inspector-mode (its 'inspector-mode)
     :note-property (its 'note)
     :prefix-map (value-of 'prefix-map)
     :event-hook (its 'event-hooks)
     :close-hook (its 'net-process-close-hooks)
     slots)))

(defun contexture-lisp--told (data)
  "Return DATA, which a Lisp image told, without text properties and functions.
Emacs could evaluate either as it shows them."
  (require 'contexture-rpc)
  (contexture--tame-atoms (contexture--plain data)))

(defun contexture-lisp--debugger-facts ()
  "Return the message, the type and the restarts of this debugger's error."
  (pcase-let ((`(,condition . ,restarts)
               (if (derived-mode-p 'sldb-mode)
                   (cons sldb-condition sldb-restarts)
                 (cons sly-db-condition sly-db-restarts))))
    (list :message (contexture-lisp--cut (substring-no-properties (nth 0 condition)))
          :type (contexture-lisp--cut
                 (contexture--trim (substring-no-properties (nth 1 condition))
                                   " \t[]"))
          :restarts (mapcar (pcase-lambda (`(,name ,text . ,_))
                              (contexture-lisp--cut
                               (substring-no-properties (format "[%s] %s" name text))))
                            restarts))))

(defun contexture-lisp--ask (client slot &rest arguments)
  "Call the function in SLOT of CLIENT with ARGUMENTS."
  (apply (cl-struct-slot-value 'contexture-lisp--client slot client) arguments))

;;;; Connections

(defun contexture-lisp--real-p (client connection)
  "Return non-nil if CONNECTION of CLIENT is to a Lisp, not to Contexture."
  (let ((type (and (process-live-p connection)
                   (contexture-lisp--ask client 'type connection))))
    (and type (not (equal type "Contexture")))))

(defun contexture-lisp--connections (client)
  "Return the connections of CLIENT to Lisps."
  (and (featurep (contexture-lisp--client-feature client))
       (cl-remove-if-not (apply-partially #'contexture-lisp--real-p client)
                         (contexture-lisp--ask client 'connections))))

(defun contexture-lisp--connection (client)
  "Return a connection of CLIENT to a Lisp, preferring this buffer's."
  (let ((name (contexture-lisp--client-name client))
        (lisps (contexture-lisp--connections client)))
    (cond ((null lisps)
           (contexture--user-error "%s is not connected to a Lisp; M-x %s starts one" name
                       (contexture-lisp--client-feature client)))
          ((car (memq (contexture-lisp--ask client 'current) lisps)))
          (t (car lisps)))))

(defun contexture-lisp--implementation (client connection)
  "Return the name and version of the Lisp at CONNECTION of CLIENT.
The image tells them."
  (contexture--visible
   (substring-no-properties (format "%s %s" (contexture-lisp--ask client 'type connection)
                                    (contexture-lisp--ask client 'version connection)))))

;;;; Calls

(defun contexture-lisp--form (client function &rest arguments)
  "Return a form that calls FUNCTION of CLIENT's package with ARGUMENTS.
Its value is nil if FUNCTION signals an error."
  `(cl:ignore-errors
    (,(intern (format "%s:%s" (contexture-lisp--client-prefix client) function))
     ,@arguments)))

(defun contexture-lisp--call (client connection thread form then)
  "Evaluate FORM in THREAD of CONNECTION of CLIENT; call THEN with the value.
THEN runs later, in this buffer if it is still alive, and adds to this
buffer's context."
  (let ((buffer (current-buffer))
        (manager (contexture-adding-context)))
    (contexture-lisp--ask
     client 'send connection form (contexture-lisp--ask client 'package connection) thread
     (lambda (result)
       ;; A process filter may call this; it must neither wait nor ask the user.
       (run-at-time 0 nil #'contexture-lisp--answered
                    buffer manager then result)))
    nil))

(defun contexture-lisp--answered (buffer manager then result)
  "Call THEN with the value in RESULT; what THEN adds goes to MANAGER.
THEN runs in BUFFER if that is still live, else in the current buffer."
  (with-current-buffer (if (buffer-live-p buffer) buffer (current-buffer))
    (let ((contexture-context manager))
      (condition-case problem
          (pcase result
            (`(:ok ,value) (funcall then value))
            (_ (user-error "Nothing added: the Lisp aborted the request")))
        ((user-error quit)
         (contexture--message "%s" (error-message-string problem)))))))

;;;; Reading a name

(defun contexture-lisp--read-symbol (client)
  "Read the name of a symbol, completed by the image of CLIENT."
  (let* ((connection (contexture-lisp--connection client))
         (package (contexture-lisp--ask client 'package connection))
         (default (contexture-lisp--ask client 'symbol)))
    (completing-read
     (format-prompt "Add symbol" (contexture--visible default))
     (completion-table-dynamic
      (lambda (prefix)
        (let ((deadline (+ (float-time) 1))
              completions done)
          (contexture-lisp--ask
           client 'send connection
           `(cl:ignore-errors (,(contexture-lisp--client-completions client)
                               ,(substring-no-properties prefix) ',package))
           package t
           (lambda (result)
             (setq done t
                   completions
                   (mapcar #'contexture--visible-candidate
                           (car (cadr result))))))
          (while (not (or done (input-pending-p) (> (float-time) deadline)
                          (not (process-live-p connection))))
            (accept-process-output connection 0.02))
          completions)))
     nil nil nil nil default)))

;;;; Locations

(defun contexture-lisp--at-location (client location function)
  "Call FUNCTION with point at LOCATION, and return its value.
Return nil if Emacs cannot find the text.  LOCATION is in the form of CLIENT.
A file that is opened for this stays open; see
`contexture-lisp--with-visits'."
  (when-let* ((buffer (and (eq (car-safe location) :location)
                           (contexture-lisp--location-buffer client (nth 1 location)))))
    (with-current-buffer buffer
      (contexture--widened
        (when-let* ((position (ignore-errors
                                (contexture-lisp--ask client 'offset location))))
          (goto-char (min (max position (point-min)) (point-max)))
          (funcall function))))))

(defun contexture-lisp--location-buffer (client place)
  "Return a buffer with the text of PLACE, part of a location of CLIENT, or nil."
  (pcase place
    (`(:buffer ,name) (get-buffer name))
    (`(:buffer-and-file ,name ,file)
     (or (get-buffer name) (contexture-lisp--location-buffer client `(:file ,file))))
    (`(:file ,file)
     (let ((name (contexture-lisp--ask client 'filename file)))
       (or (contexture--visited-buffer name)
           (when-let* ((file (contexture--outside-file name)))
             (let ((find-file-hook nil)
                   (delay-mode-hooks t))
               (and (file-exists-p file) (contexture--visit-quietly file)))))))
    (`(:source-form ,text)
     (with-current-buffer (get-buffer-create " *contexture source*")
       (erase-buffer)
       (insert text)
       (delay-mode-hooks (lisp-mode))
       (current-buffer)))))

(defun contexture-lisp--no-file-p ()
  "Return non-nil if the current buffer only has text that the image gave.
It is in no file, and its lines mean nothing to anybody."
  (equal (buffer-name) " *contexture source*"))

(defmacro contexture-lisp--with-visits (&rest body)
  "Evaluate BODY, then close the files that it opened."
  (declare (indent 0) (debug t))
  `(let ((buffers (buffer-list)))
     (unwind-protect (progn ,@body)
       (contexture-symbol--close-new buffers)
       (when (get-buffer " *contexture source*")
         (kill-buffer " *contexture source*")))))

;;;; Symbols

(defun contexture-lisp--add-symbol (client name)
  "Add the definition of NAME, as the image of CLIENT knows it."
  (when (or (null name) (string-blank-p name))
    (user-error "No symbol was given"))
  (let* ((name (contexture--trim (substring-no-properties name)))
         (connection (contexture-lisp--connection client))
         (package (contexture-lisp--ask client 'package connection)))
    (contexture-lisp--call
     client connection t
     `(cl:list ,(contexture-lisp--form client "find-definitions-for-emacs" name)
               ,(contexture-lisp--form client "operator-arglist" name package)
               ,(contexture-lisp--documentation client name package))
     (lambda (answer)
       (pcase-let ((`(,definitions ,arglist ,docstring) answer))
         (contexture-lisp--add-definition
          client name definitions
          (contexture--plist
           :arglist arglist :docstring docstring
           :lisp (contexture-lisp--implementation client connection))))))))

(defun contexture-lisp--documentation (client name package)
  "Return a form for the documentation of NAME in PACKAGE of CLIENT."
  (let* ((prefix (contexture-lisp--client-prefix client))
         (symbol `(,(intern (concat prefix "::parse-symbol")) ,name
                   (,(intern (concat prefix "::guess-buffer-package")) ,package))))
    `(cl:ignore-errors
      (cl:or (cl:documentation ,symbol 'cl:function)
             (cl:documentation ,symbol 'cl:variable)
             (cl:documentation ,symbol 'cl:type)))))

(defun contexture-lisp--add-definition (client name definitions known)
  "Add one of DEFINITIONS, pairs of name and location, of the symbol NAME.
KNOWN is a plist of CLIENT's other facts about the symbol.  Facts that the
source does not contain are added, too.  If Emacs cannot find the source,
only the facts are added."
  (contexture-lisp--with-visits
    (let ((found (cl-loop for (label location) in definitions
                          for params = (contexture-lisp--capture client name location known)
                          when params
                          collect (cons (contexture--visible-candidate
                                         (string-join (split-string label) " "))
                                        params))))
      (cond (found (let ((chosen (contexture-lisp--choose found)))
                     (contexture-sources--add-all
                      (mapcar (lambda (params) (cons 'add-item params)) chosen)
                      "definition")
                     (contexture-lisp--add-unsaid
                      name known (mapconcat (lambda (params) (plist-get params :content))
                                            chosen "\n"))))
            ((or (plist-get known :arglist) (plist-get known :docstring))
             (contexture--add (contexture-lisp--describe name known)))
            (definitions (contexture--user-error
                          "Emacs finds neither source nor documentation of %s" name))
            (t (contexture--user-error "%s knows no definition of %s"
                           (plist-get known :lisp) name))))))

(defun contexture-lisp--capture (client name location known)
  "Return parameters that add the definition of NAME at LOCATION, or nil.
KNOWN is a plist of CLIENT's other facts about the symbol."
  (contexture-lisp--at-location
   client location
   (lambda ()
     (let ((bounds (or (contexture--defun-bounds)
                       (cons (line-beginning-position) (line-end-position)))))
       (if (contexture-lisp--no-file-p)
           (list :type :code
                 :content (buffer-substring-no-properties (car bounds) (cdr bounds))
                 :metadata `( :origin :symbol :symbol ,name :language "lisp" ,@known
                              ,@(contexture--as-of)))
         (apply #'contexture--capture (car bounds) (cdr bounds) :symbol
                :symbol name known))))))

(defun contexture-lisp--add-unsaid (name known text)
  "Add the facts KNOWN about NAME that TEXT, its definition, does not say.
There are such facts for a method, whose generic function has the
documentation, and for what a macro defines."
  (let* ((arglist (plist-get known :arglist))
         (docstring (plist-get known :docstring))
         (documented (or (null docstring) (contexture-lisp--documents-p text docstring))))
    (unless (and documented (or (null arglist) (contexture-lisp--names-p text arglist)))
      (contexture-lisp--with-unknown
       (list (contexture-lisp--describe
              name (contexture--plist :arglist arglist
                                      :docstring (and (not documented) docstring)
                                      :lisp (plist-get known :lisp))))
       (lambda (new) (when new (contexture--add (car new))))))))

(defun contexture-lisp--documents-p (text docstring)
  "Return non-nil if TEXT, a definition, has DOCSTRING, with escapes or without."
  (cl-flet ((words (string) (string-join (split-string string) " ")))
    (string-search (words docstring)
                   (words (replace-regexp-in-string "\\\\\\(.\\)" "\\1" text)))))

(defun contexture-lisp--names-p (text arglist)
  "Return non-nil if TEXT, a definition, has all names in ARGLIST but its first."
  (cl-flet ((names (string) (split-string (downcase string) "[][()'`,@#:\"[:space:]]+" t)))
    (let ((said (names text)))
      (cl-every (lambda (name) (or (string-prefix-p "&" name) (member name said)))
                (cdr (names (replace-regexp-in-string "[^(): ]+::?" "" arglist)))))))

(defconst contexture-lisp--all "all of them"
  "What the user chooses to add all definitions of a symbol.")

(defun contexture-lisp--choose (found)
  "Return the parameters of those of FOUND that the user chooses, a list.
FOUND are pairs of a label and parameters.  If there is one, do not ask."
  (if (null (cdr found))
      (list (cdar found))
    (let ((choice (completing-read
                   (format-prompt "Which definition" (caar found))
                   (append found (list contexture-lisp--all)) nil t nil nil (caar found))))
      (if (equal choice contexture-lisp--all)
          (mapcar #'cdr found)
        (list (cdr (assoc choice found)))))))

(defun contexture-lisp--describe (name known)
  "Return parameters that add the facts KNOWN about NAME, without its source."
  (list :type :text
        :content (concat (or (plist-get known :arglist) name) "\n"
                         (when-let* ((docstring (plist-get known :docstring)))
                           (concat "\n" docstring "\n")))
        :metadata `(:origin :symbol :symbol ,name :language "text" ,@known
                                                ,@(contexture--as-of))))

;;;; The commands of one client

(eval-and-compile
  (defconst contexture-lisp--commands
    '((add-symbol "s" (name)
       "Add the definition of NAME to this buffer's context, as the Lisp knows it.
Interactively, NAME is the symbol at point, or one that you type.  The
image says where the source is; if Emacs cannot find it, the argument list
and the documentation are added."
       (list (contexture-lisp--read-symbol client)))
      (add-history "h" (count)
       "Add the last COUNT interactions of the REPL to this buffer's context.
COUNT is the prefix argument, 1 by default.  Each interaction becomes an
item with its input, its output, and the value or the error."
       "p")
      (add-error "e" (&optional frames)
       "Add the error of the debugger to this buffer's context, as one item.
It has the condition, the restarts, and the first frames of the
backtrace; frames in your sources have their line and variables.
FRAMES, the prefix argument, is the number of frames, 20 by default."
       (list (and current-prefix-arg (prefix-numeric-value current-prefix-arg))))
      (add-inspector "i" ()
       "Add the contents of the inspector of %s to this buffer's context.")
      (add-note "n" ()
       "Add the compiler's notes at point, or on this line, to the context.
In the compilation log of %s, add the note at point."))
    "The commands of a client: (NAME KEY ARGUMENTS DOCSTRING INTERACTIVE).
The name of the client takes the place of %s in DOCSTRING, and the
client itself that of `client' in INTERACTIVE.")

  (defun contexture-lisp--command (feature name)
    "Return the symbol of the command called NAME of FEATURE."
    (intern (format "contexture-%s-%s" feature name)))

  (defun contexture-lisp--definition (command feature name client)
    "Return the form that defines COMMAND, one of `contexture-lisp--commands'.
FEATURE, NAME and CLIENT are as in `contexture-lisp--define-commands'."
    (pcase-let ((`(,what ,_ ,arguments ,docstring . ,reads) command))
      `(defun ,(contexture-lisp--command feature what) ,arguments
         ,(format docstring name)
         (interactive ,@(cl-subst client 'client reads))
         (,(contexture-lisp--command 'lisp (concat "-" (symbol-name what)))
          ,client ,@(remq '&optional arguments))))))

(defun contexture-lisp--make-map (feature)
  "Return a keymap of the commands of FEATURE, a client or `lisp'."
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,name ,key . ,_) contexture-lisp--commands)
      (define-key map key (contexture-lisp--command feature name)))
    (define-key map "x" #'contexture-lisp-explain-error)
    map))

(defmacro contexture-lisp--define-commands (feature name client)
  "Define the commands of CLIENT, and the keymap that its mode uses.
FEATURE, a symbol, is part of the commands' names, and NAME is the
client's name as shown to the user.  CLIENT is the variable with the
`contexture-lisp--client'."
  `(progn
     ,@(cl-loop for command in contexture-lisp--commands
                collect (contexture-lisp--definition command feature name client))
     (defvar ,(contexture-lisp--command feature 'map)
       (let ((map (contexture-lisp--make-map ',feature)))
         (define-key map "l" #'contexture-list)
         (define-key map "p" #'contexture-preview)
         (define-key map "?" #'contexture-menu)
         map)
       ,(format "Keymap that `contexture-%s-mode' puts behind the prefix of %s."
                feature name))))

;;;; The client that is connected

(defun contexture-lisp--clients ()
  "Return the clients that are connected to a Lisp, this buffer's first."
  (let ((slime (and (featurep 'slime) (bound-and-true-p slime-net-processes)
                    contexture-slime--client))
        (sly (and (featurep 'sly) (bound-and-true-p sly-net-processes)
                  contexture-sly--client)))
    (cl-remove-if-not #'contexture-lisp--connections
                      (delq nil (if (bound-and-true-p sly-mode)
                                    (list sly slime)
                                  (list slime sly))))))

(defun contexture-lisp--offer-compiling (place)
  "Compile the changed definition at PLACE in this buffer, or offer to.
`contexture-lisp-compile' says which."
  (when-let* ((contexture-lisp-compile)
              ((derived-mode-p 'lisp-mode))
              (client (car (contexture-lisp--clients)))
              (definition (save-excursion (goto-char place) (contexture-defun-at-point))))
    (when (or (eq contexture-lisp-compile t)
              (contexture--y-or-n-p (contexture--format "Compile %s? " (plist-get definition :name))))
      (cl-progv (list (contexture-lisp--symbol client "dispatching-connection"))
          (list (contexture-lisp--connection client))
        (save-excursion
          (goto-char place)
          (funcall (contexture-lisp--symbol client "compile-defun")))))))

(add-hook 'contexture-review-accepted-functions #'contexture-lisp--offer-compiling)

(defun contexture-lisp-connected-p ()
  "Return non-nil if SLIME or SLY is connected to a Lisp."
  (and (contexture-lisp--clients) t))

(defun contexture-lisp--dispatch (command)
  "Call the COMMAND of this name for the client that is connected."
  (let ((client (or (car (contexture-lisp--clients))
                    (user-error "Neither SLIME nor SLY is connected to a Lisp"))))
    (call-interactively
     (contexture-lisp--command (contexture-lisp--client-feature client) command))))

;;;###autoload
(defun contexture-lisp-add-symbol ()
  "Add a definition that the Lisp image knows to this buffer's context."
  (interactive)
  (contexture-lisp--dispatch 'add-symbol))

;;;###autoload
(defun contexture-lisp-add-history ()
  "Add the latest interaction of the Lisp REPL to this buffer's context.
With a prefix argument, add that many."
  (interactive)
  (contexture-lisp--dispatch 'add-history))

;;;###autoload
(defun contexture-lisp-add-error ()
  "Add the error and the backtrace of the Lisp debugger to the context.
With a prefix argument, add that many frames."
  (interactive)
  (contexture-lisp--dispatch 'add-error))

(defconst contexture-lisp--error-question
  "Explain the error in the Lisp debugger: what causes it, and how I can fix it."
  "What `contexture-lisp-explain-error' asks.")

;;;###autoload
(defun contexture-lisp-explain-error ()
  "Have a model explain the error of the Lisp debugger.
Add the error to the context of the buffer with its source, as
`contexture-lisp-add-error' does, and ask in a new conversation there; see
`contexture-conversation-continue'.  If several debuggers are open, call this
in the one with the error."
  (interactive)
  (contexture-lisp--add-error
   (or (cl-find-if (lambda (client)
                     (derived-mode-p (contexture-lisp--client-debugger-mode client)))
                   (contexture-lisp--clients))
       (car (contexture-lisp--clients))
       (user-error "Neither SLIME nor SLY is connected to a Lisp"))
   nil (lambda (&rest _)
         (let ((session (contexture-conversation-code--idle (contexture-conversation-code--clean))))
           (with-current-buffer session
             (contexture-conversation-code--submit contexture-lisp--error-question nil))
           (contexture-conversation-code--show session)))))

;;;###autoload
(defun contexture-lisp-add-inspector ()
  "Add the contents of the Lisp image's inspector to the context."
  (interactive)
  (contexture-lisp--dispatch 'add-inspector))

;;;###autoload
(defun contexture-lisp-add-note ()
  "Add the compiler's note at point to this buffer's context."
  (interactive)
  (contexture-lisp--dispatch 'add-note))

;;;###autoload (autoload 'contexture-lisp-map "contexture-lisp" nil nil 'keymap)
(defvar contexture-lisp-map (contexture-lisp--make-map 'lisp)
  "Keymap of the commands that add data from a running Lisp.")
(defalias 'contexture-lisp-map contexture-lisp-map)

;;; REPLs of Lisp clients

;; Reads the input and output of a Lisp's REPL from its buffer, by the
;; text properties that the client sets.
;;
;; Also implements `contexture-slime-mode' and `contexture-sly-mode': keys
;; behind the client's prefix and, in REPLs connected to Contexture, typing
;; of prose, without argument lists or the comma shortcut.  Before input is
;; sent there, the server is told what changed in buffers.

(defconst contexture-lisp--no-value "\\`; No values?\\'"
  "Regexp for what a client prints when there is no value.")

(defconst contexture-lisp--failure
  "^; \\(Evaluation aborted on\\|Debugger entered on\\) \\(.*?\\)\\.?$"
  "Regexp for what a client prints after an error.")

;;;; History

(defun contexture-lisp--add-history (client count)
  "Add the last COUNT interactions of a REPL of CLIENT."
  (when (< count 1)
    (user-error "Ask for at least one interaction"))
  (let* ((connection (contexture-lisp--connection client))
         (lisp (contexture-lisp--implementation client connection))
         (interactions
          (with-current-buffer (contexture-lisp--repl client connection)
            (mapcar (lambda (interaction)
                      (append interaction (list :buffer (buffer-name) :lisp lisp)))
                    (contexture-lisp--interactions client count)))))
    (unless interactions
      (user-error "Nothing has been evaluated in the REPL yet"))
    (let ((all (mapcar #'contexture-lisp--interaction-params interactions)))
      (contexture-lisp--with-unknown
       all
       (lambda (new)
         (if new
             (contexture-sources--add-all
              (mapcar (lambda (params) (cons 'add-item params)) new)
              "interaction")
           (contexture--message "The context already has %s"
                                (if (cdr all) "these interactions"
                                  "this interaction"))))))))

(defun contexture-lisp--with-unknown (all function)
  "Call FUNCTION with those of ALL whose texts the context does not have yet.
ALL are parameters that add items of one type.  FUNCTION is called later;
what it adds goes into the same context."
  (let ((buffer (current-buffer))
        (manager (contexture-adding-context)))
    (contexture-request-async
     'list-items (list :manager manager :types (list (plist-get (car all) :type)))
     :success
     (lambda (items)
       (contexture--with-live-buffer buffer
         (let ((contexture-context manager)
               (known (contexture--pluck :content items)))
           (funcall function
                    (cl-remove-if (lambda (params)
                                    (member (plist-get params :content) known))
                                  all))))))))

(defun contexture-lisp--repl (client connection)
  "Return this buffer if it is a REPL of CLIENT, else the REPL of CONNECTION."
  (cond ((not (derived-mode-p (contexture-lisp--client-repl-mode client)))
         (or (contexture-lisp--ask client 'repl connection)
             (contexture--user-error "%s has no REPL" (contexture-lisp--client-name client))))
        ((contexture-lisp--agent-p client)
         (user-error "This REPL is a conversation with Contexture, \
which already has its text"))
        (t (current-buffer))))

(defun contexture-lisp--interactions (client count)
  "Return the last COUNT interactions of this REPL of CLIENT, oldest first.
Each is a plist of `:prompt', `:input', `:output', and `:value' or
`:error'.  An interaction that still runs is left out, unless it is in a
debugger."
  (contexture--widened
    (let ((end (point-max))
          interactions)
      (while (and (< (length interactions) count)
                  (> end (point-min)))
        (let ((start (contexture-lisp--prompt-before client end)))
          (when-let* ((interaction (and start (contexture-lisp--interaction
                                               client start end))))
            (push interaction interactions))
          (setq end (or start (point-min)))))
      interactions)))

(defun contexture-lisp--prompt-before (client position)
  "Return the start of CLIENT's last prompt before POSITION, or nil."
  (cl-flet ((behind-prompt-p ()
              (and (> position (point-min))
                   (eq (contexture-lisp--ask client 'kind (1- position)) 'prompt)))
            (go-back ()
              (setq position (or (previous-property-change position) (point-min)))))
    (while (and (> position (point-min)) (not (behind-prompt-p)))
      (go-back))
    (when (behind-prompt-p)
      (while (behind-prompt-p)
        (go-back))
      position)))

(defun contexture-lisp--interaction (client start end)
  "Return the interaction of CLIENT from START, a prompt, to END, or nil.
Return nil if nothing was sent, or if there is no result yet."
  (pcase-let* ((`(,prompt ,input ,output ,rest)
                (contexture-lisp--parts client start end))
               (outcome (contexture-lisp--outcome client rest (= end (point-max)))))
    (and outcome
         (not (string-blank-p input))
         (append (list :prompt (contexture--trim prompt)
                       :input (contexture--trim-right input))
                 (contexture--plist
                  :output (and (not (string-blank-p output))
                               (contexture--trim-right output "\n")))
                 outcome))))

(defun contexture-lisp--parts (client start end)
  "Return prompt, input, output and the rest between START and END, as texts.
CLIENT's text properties tell them apart.  Input that a running program
reads is part of its output."
  (let ((position start) seen prompt input output rest)
    (while (< position end)
      (let* ((next (next-property-change position nil end))
             (text (buffer-substring-no-properties position next))
             (kind (contexture-lisp--ask client 'kind position)))
        (pcase kind
          ('prompt (push text prompt))
          ((and 'input (guard (memq seen '(prompt input)))) (push text input))
          ((or 'input 'output) (push text output))
          ((guard (and (eq seen 'input) (string-blank-p text)))) ; the end of the input's line
          (_ (push text rest)))
        (setq seen (or kind 'rest)
              position next)))
    (mapcar (lambda (texts) (apply #'concat (nreverse texts)))
            (list prompt input output rest))))

(defun contexture-lisp--outcome (client text last)
  "Return the outcome that TEXT, the rest of an interaction, shows.
It is a plist with `:value' or `:error', or nil if there is none yet.
LAST non-nil means that no prompt follows; then ask CLIENT's debugger."
  (let ((text (contexture--trim text)))
    (cond ((string-match contexture-lisp--failure text)
           (list :error (match-string 2 text)))
          ((not (string-empty-p text))
           (list :value text))
          (last (when-let* ((debugger (contexture-lisp--debugger-here client)))
                  (list :error (with-current-buffer debugger
                                 (plist-get (contexture-lisp--ask client 'debugger)
                                            :message)))))
          (t (list :value "; No value")))))

(defun contexture-lisp--debugger-here (client)
  "Return a debugger of CLIENT for this buffer's connection, or nil."
  (let ((connection (contexture-lisp--ask client 'buffer-connection)))
    (cl-find-if (lambda (buffer)
                  (with-current-buffer buffer
                    (and (derived-mode-p (contexture-lisp--client-debugger-mode client))
                         (eq connection (contexture-lisp--ask client 'buffer-connection)))))
                (buffer-list))))

(defun contexture-lisp--interaction-params (interaction)
  "Return parameters that add INTERACTION, a plist, in the form of a REPL."
  (let ((output (plist-get interaction :output))
        (value (plist-get interaction :value)))
    (list :type :repl-history
          :content
          (concat (plist-get interaction :prompt) " " (plist-get interaction :input) "\n"
                  (and output (concat output "\n"))
                  (cond ((null value)
                         (concat "; Error: " (string-replace "\n" "\n; "
                                                             (plist-get interaction :error))))
                        ((string-match-p contexture-lisp--no-value value) value)
                        (t (concat "=> " value)))
                  "\n")
          :metadata `(:origin :repl :language "lisp" ,@interaction ,@(contexture--as-of)))))

;;;; REPLs of Contexture itself

(defvar contexture-lisp--agent-mode-map
  (let ((map (make-sparse-keymap)))
    (dolist (command '(slime-space slime-autodoc-space sly-autodoc-space))
      (define-key map (vector 'remap command) #'self-insert-command))
    (define-key map [remap sly-mrepl-shortcut] #'contexture-lisp-comma)
    ;; Indenting prose as Lisp fails if its parentheses do not match.
    (dolist (command '(indent-for-tab-command
                       slime-fuzzy-indent-and-complete-symbol
                       sly-mrepl-indent-and-complete-symbol))
      (define-key map (vector 'remap command) #'completion-at-point))
    map)
  "Keymap of `contexture-lisp--agent-mode'.")

(defun contexture-lisp-comma (count)
  "Right behind the prompt read a command of SLY's REPL; else insert COUNT commas.
SLIME does so by itself."
  (interactive "p")
  (if (and (eobp) (eq (contexture-sly--kind (1- (point))) 'prompt))
      (call-interactively #'sly-mrepl-shortcut)
    (self-insert-command count)))

(defvar-local contexture-lisp--autodoc nil
  "Client whose argument lists were shown in this buffer before.")

(define-minor-mode contexture-lisp--agent-mode
  "Minor mode for typing prose in a REPL connected to Contexture.
The space inserts itself, and so does the comma except right behind the
prompt.  TAB only completes, a name after an @ adds what it names to the
context, and no argument lists are shown."
  :init-value nil
  :interactive nil
  :keymap contexture-lisp--agent-mode-map
  (contexture-mention-mode (if contexture-lisp--agent-mode 1 -1))
  (cond ((not contexture-lisp--agent-mode)
         (when contexture-lisp--autodoc
           (contexture-lisp--ask contexture-lisp--autodoc 'autodoc t))
         (kill-local-variable 'contexture-lisp--autodoc))
        (t
         (when-let* ((client (contexture-lisp--agent-client)))
           (when (contexture-lisp--ask client 'autodoc)
             (setq contexture-lisp--autodoc client)
             (contexture-lisp--ask client 'autodoc nil))))))

(defvar contexture-lisp--on nil
  "Alist from each client whose mode is on to a list (KEY BINDING).
KEY is the event that the mode bound, and BINDING its former binding.")

(defun contexture-lisp--agent-client ()
  "Return the client whose mode is on and whose REPL this buffer is, or nil."
  (cl-find-if (lambda (client)
                (derived-mode-p (contexture-lisp--client-repl-mode client)))
              (mapcar #'car contexture-lisp--on)))

(defun contexture-lisp--agent-p (client)
  "Return non-nil if this is a REPL of CLIENT connected to Contexture."
  (and (derived-mode-p (contexture-lisp--client-repl-mode client))
       (contexture-lisp--to-agent-p
        client (contexture-lisp--ask client 'buffer-connection))))

(defun contexture-lisp--to-agent-p (client connection)
  "Return non-nil if CONNECTION of CLIENT is to Contexture."
  (and (process-live-p connection)
       (equal (contexture-lisp--ask client 'type connection) "Contexture")))

(defun contexture-lisp--before-message (message)
  "Tell Contexture what changed before a client sends it the question MESSAGE.
These are changes in buffers and, after SLIME has connected again in
the same REPL, its project.  Return nil, so that the client then sends
MESSAGE."
  (when (pcase message
          (`(:emacs-channel-send ,_ (:process . ,_)) t)
          (`(:emacs-rex (,function . ,_) . ,_)
           (string-match-p "[:-]eval" (symbol-name function))))
    (when-let* ((client (contexture-lisp--agent-client)))
      (when (contexture-lisp--agent-p client)
        (contexture-lisp--tell-directory client)))
    (when (and (or (bound-and-true-p contexture-live--buffers)
                   (bound-and-true-p contexture-live--copies))
               (cl-some (lambda (client)
                          (contexture-lisp--to-agent-p
                           client (contexture-lisp--ask client 'current)))
                        (mapcar #'car contexture-lisp--on)))
      (contexture-live--push-and-wait)))
  nil)

(defun contexture-lisp--free-agents ()
  "Turn `contexture-lisp--agent-mode' on in REPLs connected to Contexture."
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when-let* ((client (contexture-lisp--agent-client)))
        (when (contexture-lisp--agent-p client)
          (contexture-lisp--tell-directory client)
          (unless contexture-lisp--agent-mode
            (contexture-lisp--agent-mode)))))))

(defun contexture-lisp--tell-directory (client)
  "Make this REPL of CLIENT one of the project of the buffer that connected.
Do so once for each connection: the client may use the REPL of an earlier one.
The conversation is about the project, and shows its items."
  (let* ((connection (contexture-lisp--ask client 'buffer-connection))
         ;; It began where the user was.
         (buffer (process-buffer connection))
         (folder (if (buffer-live-p buffer) (buffer-local-value 'default-directory buffer)
                   default-directory)))
    (unless (or (contexture--remote-p folder) (process-get connection 'contexture-told))
      (process-put connection 'contexture-told t)
      (setq default-directory folder)
      (contexture-lisp--ask
       client 'send connection
       (list (intern (format "%s:set-default-directory"
                             (contexture-lisp--client-prefix client)))
             (expand-file-name default-directory))
       "contexture" t #'ignore))))

(defun contexture-lisp--connected (client)
  "Give source buffers their Lisp back if CLIENT has just connected to Contexture.
Also tell a REPL that SLIME uses again of its project."
  (contexture-lisp--free-agents)
  (when-let* ((contexture-lisp-keep-default)
              ((contexture-lisp--to-agent-p
                client (contexture-lisp--ask client 'current)))
              (lisp (car (contexture-lisp--connections client))))
    ;; The client still makes a REPL for the new connection.
    (contexture--later
     (lambda ()
       (when (and (process-live-p lisp)
                  (contexture-lisp--to-agent-p
                   client (symbol-value (contexture-lisp--symbol client "default-connection"))))
         (set (contexture-lisp--symbol client "default-connection") lisp))))))

(defun contexture-lisp--symbol (client name)
  "Return the symbol of CLIENT that ends in NAME, such as slime-NAME."
  (intern (format "%s-%s" (contexture-lisp--client-feature client) name)))

(defun contexture-slime--connected ()
  "Do what is to be done once SLIME has connected."
  (contexture-lisp--connected contexture-slime--client))

(defun contexture-sly--connected ()
  "Do what is to be done once SLY has connected."
  (contexture-lisp--connected contexture-sly--client))

(defun contexture-sly--cancelled (&rest _)
  "Tell Contexture that the user of agent-q's chat cancelled the request.
agent-q itself tells nobody."
  (when-let* ((connection (sly-current-connection))
              ((contexture-lisp--to-agent-p contexture-sly--client connection)))
    (contexture-lisp--ask contexture-sly--client 'send connection
                          '(agent-q:cancel) "contexture" t #'ignore)))

(defun contexture-lisp--free-agents-soon ()
  "Call `contexture-lisp--free-agents' when the new REPL is complete."
  (run-at-time 0 nil #'contexture-lisp--free-agents))

;;;; Modes

(defun contexture-lisp--turn (mode client)
  "Turn CLIENT's integration on or off, as the value of the symbol MODE says."
  (let ((feature (contexture-lisp--client-feature client))
        (onp (assq client contexture-lisp--on)))
    (when (and (symbol-value mode) (not (require feature nil t)))
      (set mode nil)
      (contexture--user-error "%s is not installed" (contexture-lisp--client-name client)))
    (cond ((and (symbol-value mode) (not onp))
           (contexture-lisp--turn-on
            client (symbol-value (contexture-lisp--command feature 'map))))
          ((and onp (not (symbol-value mode)))
           (contexture-lisp--turn-off client)))))

(defun contexture-lisp--turn-on (client map)
  "Bind the key of the mode of CLIENT to MAP, and allow prose in its REPLs."
  (let* ((event (aref (kbd contexture-lisp-key) 0))
         (prefix-map (contexture-lisp--ask client 'prefix-map)))
    (push (list client event (lookup-key prefix-map (vector event)))
          contexture-lisp--on)
    (define-key prefix-map (vector event) map)
    ;; After the client has made its REPL.
    (add-hook (contexture-lisp--symbol client "connected-hook")
              (contexture-lisp--client-connected client) 90)
    (when (eq (contexture-lisp--client-feature client) 'sly)
      (advice-add 'agent-q-cancel-request :before #'contexture-sly--cancelled))
    (add-hook (contexture-lisp--client-repl-hook client)
              #'contexture-lisp--free-agents-soon)
    (add-hook (contexture-lisp--client-event-hook client)
              #'contexture-lisp--before-message)
    (contexture-lisp--free-agents)))

(defun contexture-lisp--turn-off (client)
  "Undo what `contexture-lisp--turn-on' did for CLIENT."
  (pcase-let ((`(,event ,before) (cdr (assq client contexture-lisp--on)))
              (prefix-map (contexture-lisp--ask client 'prefix-map)))
    (dolist (buffer (buffer-list))
      (with-current-buffer buffer
        (when (and contexture-lisp--agent-mode
                   (eq client (contexture-lisp--agent-client)))
          (contexture-lisp--agent-mode -1))))
    (if before
        (define-key prefix-map (vector event) before)
      (setcdr prefix-map (assq-delete-all event (cdr prefix-map))))
    (remove-hook (contexture-lisp--symbol client "connected-hook")
                 (contexture-lisp--client-connected client))
    (when (eq (contexture-lisp--client-feature client) 'sly)
      (advice-remove 'agent-q-cancel-request #'contexture-sly--cancelled))
    (remove-hook (contexture-lisp--client-repl-hook client)
                 #'contexture-lisp--free-agents-soon)
    (remove-hook (contexture-lisp--client-event-hook client)
                 #'contexture-lisp--before-message)
    (setq contexture-lisp--on (assq-delete-all client contexture-lisp--on))))

;;; Errors in a Lisp image

;; The error in a debugger with its backtrace, what an inspector shows,
;; and the notes of the compiler.
;;
;; Asks the image for the frames, then for their places, then for the
;; variables of the frames whose source Emacs finds; the other frames are
;; mostly the Lisp's own and would cost tokens.  Short definitions that
;; contain a frame become part of the text.

(defconst contexture-lisp--frames 20
  "Number of frames of a backtrace to add by default.")

(defconst contexture-lisp--definitions 5
  "Maximum number of definitions to add with a backtrace.")

(defconst contexture-lisp--longest-definition 60
  "Maximum length in lines of a definition added with a backtrace.")

(defconst contexture-lisp--longest-value 200
  "Maximum number of characters of a variable's value.")

(defconst contexture-lisp--longest-condition 4000
  "Maximum number of characters of a condition, a restart or a frame.")

(defun contexture-lisp--cut (text)
  "Return TEXT, or its beginning and how much it had if it is too long."
  (let ((most contexture-lisp--longest-condition))
    (if (<= (length text) most) text
      (format "%s... [the first %d of %d characters]" (substring text 0 most) most
              (length text)))))

(defconst contexture-lisp--client-frame
  "\\`(\\(?:([^)\n]* :in \\)?\\(?:swank\\|slynk\\)[^ :]*:"
  "Regexp for a frame that belongs to SLIME or SLY itself.")

;;;; Errors

(defun contexture-lisp--add-error (client frames &optional then)
  "Add the error of a debugger of CLIENT, with FRAMES frames; then call THEN.
THEN is called in the buffer to whose context it was added."
  (let* ((frames (if (natnump frames) frames contexture-lisp--frames))
         (debugger (contexture-lisp--debugger client))
         (facts (with-current-buffer debugger
                  (contexture-lisp--ask client 'debugger)))
         (ask (lambda (form then)
                (contexture-lisp--call
                 client (plist-get facts :connection) (plist-get facts :thread)
                 form then))))
    (funcall
     ask (contexture-lisp--form client "backtrace" 0 (1+ frames))
     (lambda (backtrace)
       (let* ((all (contexture-lisp--prune backtrace))
              (kept (seq-take all frames))
              (more (nthcdr frames all)))
         (funcall
          ask (contexture-lisp--for-each client "frame-source-location" kept)
          (lambda (locations)
            (let ((kept (contexture-lisp--locate client kept locations)))
              (funcall
               ask (contexture-lisp--for-each
                    client "frame-locals-and-catch-tags"
                    (cl-remove-if-not (lambda (frame) (plist-get frame :file)) kept))
               (lambda (locals)
                 (contexture-lisp--send-error
                  client facts (contexture-lisp--with-locals kept locals)
                  more then)))))))))))

(defun contexture-lisp--debugger (client)
  "Return the debugger of CLIENT: this buffer, or the only one that is open."
  (let* ((mode (contexture-lisp--client-debugger-mode client))
         (all (cl-remove-if-not
               (lambda (buffer)
                 (with-current-buffer buffer
                   (and (derived-mode-p mode)
                        (when-let* ((connection
                                     (contexture-lisp--ask client 'buffer-connection)))
                          (contexture-lisp--real-p client connection)))))
               (buffer-list))))
    (cond ((memq (current-buffer) all) (current-buffer))
          ((null all) (contexture--user-error "No debugger of %s is open"
                                  (contexture-lisp--client-name client)))
          ((cdr all) (user-error "Several debuggers are open; go to one of them"))
          (t (car all)))))

(defun contexture-lisp--prune (backtrace)
  "Return BACKTRACE as plists, up to the first frame of the client's own code."
  (let ((frames (mapcar (lambda (frame)
                          (list :number (nth 0 frame)
                                :text (contexture-lisp--cut
                                       (contexture--trim (nth 1 frame)))))
                        backtrace))
        (case-fold-search t))
    (cons (car frames)
          (seq-take-while
           (lambda (frame)
             (not (string-match-p contexture-lisp--client-frame (plist-get frame :text))))
           (cdr frames)))))

(defun contexture-lisp--for-each (client function frames)
  "Return a form that lists the values of CLIENT's FUNCTION for FRAMES."
  `(cl:list ,@(mapcar (lambda (frame)
                        (contexture-lisp--form client function
                                               (plist-get frame :number)))
                      frames)))

(defun contexture-lisp--locate (client frames locations)
  "Return FRAMES with the `:file', `:line' and `:source' of their LOCATIONS.
LOCATIONS are in the form of CLIENT."
  (contexture-lisp--with-visits
    (cl-loop for frame in frames
             for location in locations
             collect (append frame (contexture-lisp--at-location
                                    client location #'contexture-lisp--place-here)))))

(defun contexture-lisp--place-here ()
  "Return the place of point, and the definition around it, as a plist."
  (let ((here (line-number-at-pos nil t))
        (bounds (contexture--defun-bounds)))
    `(,@(unless (contexture-lisp--no-file-p)
          (list :file (or (buffer-file-name (contexture--base-buffer)) (buffer-name))
                :line here))
      ,@(contexture--plist
         :source (contexture--trim (buffer-substring-no-properties
                                    (line-beginning-position) (line-end-position))))
      ,@(when bounds
          (list :definition
                (cons (line-number-at-pos (car bounds) t)
                      (contexture--trim-right
                       (buffer-substring-no-properties (car bounds) (cdr bounds)))))))))

(defun contexture-lisp--with-locals (frames locals)
  "Return FRAMES, with the variables from LOCALS in frames with a file.
Each element of LOCALS is a list of variables and a list of tags; the tags
are ignored."
  (cl-loop for frame in frames
           for variables = (and (plist-get frame :file) (car (pop locals)))
           for lines = (cl-loop for it in variables
                                collect (format "%s = %s" (plist-get it :name)
                                                (truncate-string-to-width
                                                 (plist-get it :value)
                                                 contexture-lisp--longest-value
                                                 nil nil t)))
           collect (if lines (append frame (list :locals lines)) frame)))

(defun contexture-lisp--in-source (client place function)
  "Call FUNCTION; in a debugger of CLIENT, call it in the buffer of PLACE.
PLACE is a frame, or nil."
  (let* ((file (plist-get place :file))
         (source (and file (derived-mode-p (contexture-lisp--client-debugger-mode client))
                      (or (contexture--outside-buffer file) (get-buffer file)))))
    (if (null source) (funcall function)
      (with-current-buffer source
        (let ((contexture-context (if (local-variable-p 'contexture-context)
                                      contexture-context
                                    (default-toplevel-value 'contexture-context))))
          (funcall function))))))

(defun contexture-lisp--send-error (client facts frames more &optional then)
  "Add the error with FACTS and FRAMES from CLIENT; call THEN if it is non-nil.
MORE non-nil means that there are more frames."
  (let ((place (cl-find-if (lambda (frame) (plist-get frame :file)) frames)))
    (contexture-lisp--in-source
     client place
     (lambda ()
       (let ((buffer (current-buffer)))
         (contexture--add
          (contexture-sources--params
           :error :debugger (concat (contexture-lisp--error-text facts frames more)
                                    (contexture-lisp--definitions-text frames))
           (contexture--plist
            :filename (let ((file (plist-get place :file)))
                        (and file (file-name-absolute-p file) file))
            :project (plist-get (contexture--buffer-metadata) :project)
            :start-line (plist-get place :line)
            :end-line (plist-get place :line)
            :condition (plist-get facts :message)
            :condition-type (plist-get facts :type)
            :restarts (plist-get facts :restarts)
            :frames (mapcar #'contexture-lisp--frame-facts frames)
            :lisp (contexture-lisp--implementation client (plist-get facts :connection))
            :buffer (plist-get facts :buffer)
            :language "lisp"))
          nil
          (and then (lambda (&rest _)
                      (contexture--with-live-buffer buffer (funcall then))))))))))

(defun contexture-lisp--file-name (file)
  "Return the name FILE relative to this buffer's project, or else its short form."
  (or (contexture--relative file (contexture--project-root)) (contexture--abbreviate file)))

(defun contexture-lisp--error-text (facts frames more)
  "Return the error with FACTS, a plist, and FRAMES as readable text.
MORE non-nil means that there are more frames."
  (concat
   (plist-get facts :message) "\n"
   "  [" (plist-get facts :type) "]\n\nRestarts:\n"
   (cl-loop for restart in (plist-get facts :restarts)
            for number from 0
            concat (format "  %d: %s\n" number restart))
   "\nBacktrace:\n"
   (mapconcat (lambda (frame)
                (concat
                 (format "  %d: %s\n" (plist-get frame :number)
                         (plist-get frame :text))
                 (when-let* ((file (plist-get frame :file)))
                   (format "       at %s:%d: %s\n" (contexture-lisp--file-name file)
                           (plist-get frame :line) (plist-get frame :source)))
                 (cl-loop for variable in (plist-get frame :locals)
                          concat (format "       %s\n" variable))))
              frames "")
   (and more "  and more\n")))

(defun contexture-lisp--frame-facts (frame)
  "Return FRAME, a plist, without the keys that only its text needs."
  (cl-loop for (key value) on frame by #'cddr
           unless (eq key :definition) nconc (list key value)))

(defun contexture-lisp--definitions-text (frames)
  "Return the definitions that FRAMES are in, the innermost first, as text.
Each definition occurs once; long ones are left out, as are those after the
first `contexture-lisp--definitions'."
  (let ((definitions
         (seq-take
          (seq-uniq
           (cl-loop for frame in frames
                    for (line . text) = (plist-get frame :definition)
                    when (and text (plist-get frame :file)
                              (<= (length (split-string text "\n"))
                                  contexture-lisp--longest-definition))
                    collect (format "%s:%d\n%s\n"
                                    (contexture-lisp--file-name (plist-get frame :file))
                                    line text)))
          contexture-lisp--definitions)))
    (if definitions
        (concat "\nSource:\n" (string-join definitions "\n"))
      "")))

;;;; Inspectors

(defun contexture-lisp--add-inspector (client)
  "Add the contents of the inspector of CLIENT."
  (let* ((mode (contexture-lisp--client-inspector-mode client))
         (buffer (if (derived-mode-p mode)
                     (current-buffer)
                   (or (cl-find mode (buffer-list)
                                :key (lambda (buffer)
                                       (buffer-local-value 'major-mode buffer)))
                       (contexture--user-error "%s has no inspector open"
                                   (contexture-lisp--client-name client))))))
    (contexture--add
     (with-current-buffer buffer
       (contexture-sources--params
        :text :inspector
        (concat (contexture--trim (contexture-lisp--without-buttons)) "\n")
        (append (contexture-sources--buffer-metadata :project :buffer :mode)
                '(:language "text")))))))

(defun contexture-lisp--without-buttons ()
  "Return the text of this inspector without what only a click on it uses.
A part that can be inspected is text; what the inspector offers to do is not."
  (let ((position (point-min)) texts)
    (while (< position (point-max))
      (let ((end (min (next-single-char-property-change position 'slime-action-number)
                      (next-single-char-property-change position 'slime-range-button)
                      (next-single-char-property-change position 'button)
                      (next-single-char-property-change position 'category))))
        (unless (or (get-text-property position 'slime-action-number)
                    (get-text-property position 'slime-range-button)
                    (let ((button (button-at position)))
                      (and button (button-has-type-p button 'sly-action))))
          (push (buffer-substring-no-properties position end) texts))
        (setq position end)))
    (contexture--edited
     (apply #'concat (nreverse texts))
     (lambda ()
       (while (not (eobp))
         (end-of-line)
         (delete-region (point) (progn (skip-chars-backward " \t") (point)))
         (forward-line))))))

;;;; Notes of the compiler

(defun contexture-lisp--add-note (client)
  "Add the notes that the compiler of CLIENT made at point or on its line."
  (if (derived-mode-p 'compilation-mode)
      (contexture-add-compilation)
    (let ((overlays (or (contexture-lisp--notes client (point) (1+ (point)))
                        (contexture-lisp--notes client (line-beginning-position)
                                                (line-end-position))
                        (user-error "The compiler has no note on this line"))))
      (contexture--add
       (contexture-sources--params
        :error :diagnostic
        (mapconcat (apply-partially #'contexture-lisp--note-text client) overlays "")
        (append (let ((lines
                       (mapcar (lambda (overlay)
                                 (line-number-at-pos (overlay-start overlay) t))
                               overlays)))
                  (list :start-line (apply #'min lines)
                        :end-line (apply #'max lines)))
                (contexture-sources--buffer-metadata
                 :filename :project :buffer :mode :modified)
                '(:language "text")))))))

(defun contexture-lisp--notes (client beg end)
  "Return the overlays of CLIENT's notes between BEG and END, in order.
If none begins there, return only the innermost ones that begin before.  Of
several at one place, the worst comes first."
  (let* ((property (contexture-lisp--client-note-property client))
         (notes (sort (cl-remove-if-not
                       (lambda (overlay) (overlay-get overlay property))
                       (overlays-in beg end))
                      (lambda (a b)
                        (if (= (overlay-start a) (overlay-start b))
                            (< (contexture-lisp--severity client a)
                               (contexture-lisp--severity client b))
                          (> (overlay-start a) (overlay-start b))))))
         (inside (cl-remove-if (lambda (overlay) (< (overlay-start overlay) beg)) notes)))
    (nreverse (or inside
                  (seq-take-while (lambda (overlay)
                                    (= (overlay-start overlay) (overlay-start (car notes))))
                                  notes)))))

(defun contexture-lisp--severity (client overlay)
  "Return how bad the note of CLIENT at OVERLAY is, a number that grows with it."
  (or (cl-position (plist-get (overlay-get overlay
                                           (contexture-lisp--client-note-property client))
                              :severity)
                   '(:note :style-warning :redefinition :warning :error :read-error))
      0))

(defun contexture-lisp--note-text (client overlay)
  "Return the text of the note of CLIENT at OVERLAY, with its line."
  (let ((note (overlay-get overlay (contexture-lisp--client-note-property client)))
        (beg (overlay-start overlay)))
    (format "line %d: %s: %s\n    %s\n%s"
            (line-number-at-pos beg t)
            (contexture--name (plist-get note :severity))
            (string-trim-left (contexture--trim-right (plist-get note :message)))
            (save-excursion
              (goto-char beg)
              (contexture--trim (buffer-substring-no-properties (line-beginning-position)
                                                                (line-end-position))))
            (if-let* ((context (plist-get note :source-context)))
                (concat (contexture--trim-right context) "\n")
              ""))))

;;; Context from SLIME

;; Definitions, interactions, errors, inspectors and compiler notes of a
;; Lisp that SLIME is connected to become context.  With
;; `contexture-slime-mode', the commands have keys behind SLIME's prefix,
;; and you can type prose in REPLs connected to Contexture.
;;
;; Loading this does not load SLIME.  Written for SLIME 2.27.

;;;; SLIME, for what is shared with SLY

(defun contexture-slime--kind (position)
  "Return the kind of a REPL's text at POSITION, a symbol or nil."
  (cond ((get-text-property position 'slime-repl-prompt) 'prompt)
        ((get-text-property position 'slime-repl-old-input) 'input)
        ((get-text-property position 'slime-repl-output) 'output)))

(defun contexture-slime--repl (connection)
  "Return the REPL of CONNECTION, or nil."
  (when (fboundp 'slime-connection-output-buffer)
    (let ((buffer (slime-connection-output-buffer connection)))
      (and (buffer-live-p buffer) buffer))))

(defun contexture-slime--autodoc (&rest switch)
  "Return whether argument lists are shown in this buffer.
With SWITCH, a list of one element, turn them on or off.  SLIME leaves the
variable of its mode non-nil when the mode is turned off, so reset it."
  (when switch
    (slime-autodoc-mode (if (car switch) 1 0))
    (unless (car switch)
      (remove-hook 'eldoc-documentation-functions 'slime-autodoc t)
      (setq slime-autodoc-mode nil)))
  (bound-and-true-p slime-autodoc-mode))

(defconst contexture-slime--client
  (contexture-lisp--new-client
   'slime "SLIME" "swank"
   :completions 'swank:simple-completions
   :repl-mode 'slime-repl-mode
   :repl #'contexture-slime--repl
   :kind #'contexture-slime--kind
   :debugger-mode 'sldb-mode
   :repl-hook 'slime-repl-mode-hook
   :connected #'contexture-slime--connected
   :autodoc #'contexture-slime--autodoc)
  "SLIME's names and functions, for the code shared with SLY.")

;;;; Commands

;;;###autoload (autoload 'contexture-slime-add-symbol "contexture-lisp" nil t)
;;;###autoload (autoload 'contexture-slime-add-history "contexture-lisp" nil t)
;;;###autoload (autoload 'contexture-slime-add-error "contexture-lisp" nil t)
;;;###autoload (autoload 'contexture-slime-add-inspector "contexture-lisp" nil t)
;;;###autoload (autoload 'contexture-slime-add-note "contexture-lisp" nil t)
(contexture-lisp--define-commands slime "SLIME" contexture-slime--client)

;;;###autoload
(define-minor-mode contexture-slime-mode
  "Add to the context with keys in SLIME, and write prose to Contexture.
The commands are on SLIME's prefix followed by `contexture-lisp-key'.
In REPLs connected to Contexture, and only there, a comma inserts itself
and no argument lists are shown."
  :global t
  :group 'contexture
  (contexture-lisp--turn 'contexture-slime-mode contexture-slime--client))

;;; Context from SLY

;; Definitions, interactions, errors, inspectors and compiler notes of a
;; Lisp that SLY is connected to become context.  With
;; `contexture-sly-mode', the commands have keys behind SLY's prefix,
;; and you can type prose in REPLs connected to Contexture.
;;
;; Loading this does not load SLY.  Written for SLY 1.0.43.

;;;; SLY, for what is shared with SLIME

(defun contexture-sly--kind (position)
  "Return the kind of a REPL's text at POSITION, a symbol or nil."
  (pcase (get-text-property position 'field)
    ('sly-mrepl-input 'input)
    ;; Input that a program has read is in no field.
    ((or 'sly-mrepl--output 'nil) 'output)
    ;; Text typed at a prompt has the property too, but not the field.
    ((guard (get-text-property position 'sly-mrepl--prompt)) 'prompt)))

(defun contexture-sly--repl (connection)
  "Return the REPL of CONNECTION, or nil."
  (when (fboundp 'sly-mrepl--find-buffer)
    (sly-mrepl--find-buffer connection)))

(defun contexture-sly--autodoc (&rest switch)
  "Return whether argument lists are shown in this buffer.
With SWITCH, a list of one element, turn them on or off."
  (when switch
    (sly-autodoc-mode (if (car switch) 1 -1)))
  (bound-and-true-p sly-autodoc-mode))

(defconst contexture-sly--client
  (contexture-lisp--new-client
   'sly "SLY" "slynk"
   :completions 'slynk-completion:simple-completions
   :repl-mode 'sly-mrepl-mode
   :repl #'contexture-sly--repl
   :kind #'contexture-sly--kind
   :debugger-mode 'sly-db-mode
   :repl-hook 'sly-mrepl-hook
   :connected #'contexture-sly--connected
   :autodoc #'contexture-sly--autodoc)
  "SLY's names and functions, for the code shared with SLIME.")

;;;; Commands

;;;###autoload (autoload 'contexture-sly-add-symbol "contexture-lisp" nil t)
;;;###autoload (autoload 'contexture-sly-add-history "contexture-lisp" nil t)
;;;###autoload (autoload 'contexture-sly-add-error "contexture-lisp" nil t)
;;;###autoload (autoload 'contexture-sly-add-inspector "contexture-lisp" nil t)
;;;###autoload (autoload 'contexture-sly-add-note "contexture-lisp" nil t)
(contexture-lisp--define-commands sly "SLY" contexture-sly--client)

;;;###autoload
(define-minor-mode contexture-sly-mode
  "Add to the context with keys in SLY, and write prose to Contexture.
The commands are on SLY's prefix followed by `contexture-lisp-key'.  In
REPLs connected to Contexture, and only there, a comma inserts itself and
no argument lists are shown."
  :global t
  :group 'contexture
  (contexture-lisp--turn 'contexture-sly-mode contexture-sly--client))

(provide 'contexture-lisp)
;;; contexture-lisp.el ends here
