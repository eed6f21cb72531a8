;;; contexture-lisp.el --- Add what a running Lisp knows  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What `contexture-slime' and `contexture-sly' share: calls to a Lisp
;; image, the locations of its definitions, and the commands that use
;; the client that is connected.  Loading this needs neither client.
;;
;; Calls to an image never wait, except the completion of a name, which
;; ends at the next key.  Calls catch their errors in the image, since an
;; error would open a debugger.

;;; Code:

(require 'contexture)
(eval-when-compile (require 'subr-x))

(autoload 'contexture-lisp--add-error "contexture-lisp-debugger")
(autoload 'contexture-lisp--add-history "contexture-lisp-repl")
(autoload 'contexture-lisp--add-inspector "contexture-lisp-debugger")
(autoload 'contexture-lisp--add-note "contexture-lisp-debugger")
(autoload 'contexture-lisp--switch "contexture-lisp-repl")
(autoload 'contexture-symbol--close-new "contexture-symbol")

(defvar contexture-slime--client)
(defvar contexture-sly--client)
(defvar slime-net-processes)
(defvar sly-net-processes)

(defcustom contexture-lisp-key "C-a"
  "The key for adding to the context, behind the prefix of SLIME or SLY.
It is a string for `kbd', and is bound while `contexture-slime-mode' or
`contexture-sly-mode' is on.  After a change, turn the mode off and on
again."
  :type 'string
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
  (autodoc nil :documentation "Function returning whether argument lists are shown; \
it also switches them."))

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
  "Return the name and version of the Lisp at CONNECTION of CLIENT."
  (format "%s %s" (contexture-lisp--ask client 'type connection)
          (contexture-lisp--ask client 'version connection)))

;;;; Calls

(defun contexture-lisp--form (client function &rest arguments)
  "Return a form that calls FUNCTION of CLIENT's package with ARGUMENTS.
It gives nil where FUNCTION signals an error."
  `(cl:ignore-errors
    (,(intern (format "%s:%s" (contexture-lisp--client-prefix client) function))
     ,@arguments)))

(defun contexture-lisp--call (client connection thread form then)
  "Evaluate FORM in THREAD of CONNECTION of CLIENT; call THEN with the value.
THEN runs later, in this buffer if it is still alive, and adds to this
buffer's context."
  (let ((buffer (current-buffer))
        (manager (contexture-current-manager)))
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
    (let ((contexture-manager manager))
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
      (apply-partially #'contexture-lisp--completions client connection package))
     nil nil nil nil default)))

(defun contexture-lisp--completions (client connection package prefix)
  "Return the symbols that begin with PREFIX, from CONNECTION of CLIENT.
They are looked up in PACKAGE.  The wait ends after a second, or when a
key is pressed."
  (let ((deadline (+ (float-time) 1))
        completions done)
    (contexture-lisp--ask
     client 'send connection
     `(cl:ignore-errors (,(contexture-lisp--client-completions client)
                         ,(substring-no-properties prefix) ',package))
     package t
     (lambda (result)
       (setq done t
             completions (mapcar #'contexture--visible-candidate (car (cadr result))))))
    (while (not (or done (input-pending-p) (> (float-time) deadline)
                    (not (process-live-p connection))))
      (accept-process-output connection 0.02))
    completions))

;;;; Locations

(defun contexture-lisp--at-location (client location function)
  "Call FUNCTION with point at LOCATION, and return its value.
Return nil if Emacs cannot find the text.  LOCATION is in the form of CLIENT.
A file that is opened for this stays open; see
`contexture-lisp--with-visits'."
  (when-let* ((buffer (and (eq (car-safe location) :location)
                           (contexture-lisp--location-buffer client (nth 1 location)))))
    (with-current-buffer buffer
      (save-excursion
        (save-restriction
          (widen)
          (let ((position (ignore-errors
                            (contexture-lisp--ask client 'offset location))))
            (when position
              (goto-char (min (max position (point-min)) (point-max)))
              (funcall function))))))))

(defun contexture-lisp--location-buffer (client place)
  "Return a buffer with the text of PLACE, part of a location of CLIENT, or nil."
  (pcase place
    (`(:buffer ,name) (get-buffer name))
    (`(:buffer-and-file ,name ,file)
     (or (get-buffer name) (contexture-lisp--location-buffer client `(:file ,file))))
    (`(:file ,file)
     (contexture-lisp--visit (contexture-lisp--ask client 'filename file)))
    (`(:source-form ,text)
     (with-current-buffer (get-buffer-create " *contexture source*")
       (erase-buffer)
       (insert text)
       (delay-mode-hooks (lisp-mode))
       (current-buffer)))))

(defun contexture-lisp--visit (file)
  "Return a buffer that visits FILE, or nil if it cannot be read.
A file that is opened here asks nothing and runs no hooks, since it is
closed soon."
  (or (find-buffer-visiting file)
      (and (file-readable-p file)
           (not (file-directory-p file))
           (let ((enable-local-variables :safe)
                 (large-file-warning-threshold nil)
                 (find-file-hook nil)
                 (delay-mode-hooks t))
             (find-file-noselect file t)))))

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
  (let* ((name (string-trim (substring-no-properties name)))
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
KNOWN is a plist of CLIENT's other facts about the symbol, which are added
if Emacs cannot find the source."
  (contexture-lisp--with-visits
    (let ((found (cl-loop for (label location) in definitions
                          for params = (contexture-lisp--capture client name location known)
                          when params
                          collect (cons (contexture--visible-candidate label) params))))
      (cond (found (contexture--add (contexture-lisp--choose found)))
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
       (apply #'contexture--capture (car bounds) (cdr bounds) :symbol
              :symbol name known)))))

(defun contexture-lisp--choose (found)
  "Return the parameters of one of FOUND, pairs of a label and parameters.
If there are several, the user chooses."
  (if (null (cdr found))
      (cdar found)
    (cdr (assoc (completing-read "Which definition: " found nil t nil nil (caar found))
                found))))

(defun contexture-lisp--describe (name known)
  "Return parameters that add the facts KNOWN about NAME, without its source."
  (list :type :text
        :content (concat (or (plist-get known :arglist) name) "\n"
                         (when-let* ((docstring (plist-get known :docstring)))
                           (concat "\n" docstring "\n")))
        :metadata `(:origin :symbol :symbol ,name :language "text" ,@known
                                                ,@(contexture--as-of))))

;;;; The commands of one client

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

(defun contexture-lisp--make-map (feature)
  "Return a keymap of the commands of FEATURE, a client or `lisp'."
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,name ,key . ,_) contexture-lisp--commands)
      (define-key map key (contexture-lisp--command feature name)))
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

(defun contexture-lisp--definition (command feature name client)
  "Return the form that defines COMMAND, one of `contexture-lisp--commands'.
FEATURE, NAME and CLIENT are as in `contexture-lisp--define-commands'."
  (pcase-let ((`(,what ,_ ,arguments ,docstring . ,reads) command))
    `(defun ,(contexture-lisp--command feature what) ,arguments
       ,(format docstring name)
       (interactive ,@(cl-subst client 'client reads))
       (,(contexture-lisp--command 'lisp (concat "-" (symbol-name what)))
        ,client ,@(remq '&optional arguments)))))

(defun contexture-lisp--turn (mode client)
  "Turn CLIENT's integration on or off, as the value of the symbol MODE says."
  (let ((feature (contexture-lisp--client-feature client)))
    (when (and (symbol-value mode) (not (require feature nil t)))
      (set mode nil)
      (contexture--user-error "%s is not installed" (contexture-lisp--client-name client)))
    (contexture-lisp--switch client (symbol-value mode)
                             (symbol-value (contexture-lisp--command feature 'map)))))

;;;; The client that is connected

(defun contexture-lisp--clients ()
  "Return the clients that are connected to a Lisp, this buffer's first."
  (let ((slime (and (featurep 'slime) (bound-and-true-p slime-net-processes)
                    (require 'contexture-slime)
                    contexture-slime--client))
        (sly (and (featurep 'sly) (bound-and-true-p sly-net-processes)
                  (require 'contexture-sly)
                  contexture-sly--client)))
    (cl-remove-if-not #'contexture-lisp--connections
                      (delq nil (if (bound-and-true-p sly-mode)
                                    (list sly slime)
                                  (list slime sly))))))

(defun contexture-lisp-connected-p ()
  "Return non-nil if SLIME or SLY is connected to a Lisp."
  (and (contexture-lisp--clients) t))

(defun contexture-lisp--dispatch (command)
  "Call the COMMAND of this name for the client that is connected."
  (let ((client (or (car (contexture-lisp--clients))
                    (user-error "Neither SLIME nor SLY is connected to a Lisp"))))
    (call-interactively (intern (format "contexture-%s-%s"
                                        (contexture-lisp--client-feature client)
                                        command)))))

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

(provide 'contexture-lisp)
;;; contexture-lisp.el ends here
