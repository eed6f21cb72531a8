;;; contexture-scope.el --- Which contexts a buffer has  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The layers of a buffer: the contexts whose items it sends, from the
;; general to the special, and the one among them to which its commands
;; add.  The server gives them their names (method `open-layers'), which
;; say which project or file is meant; users see labels.  A buffer asks once
;; and keeps the answer.

;;; Code:

(require 'cl-lib)
(require 'contexture-base)
(eval-when-compile (require 'subr-x))

(autoload 'contexture--tell-opened-layers "contexture-layers")
(autoload 'contexture--choose-layer "contexture-layers")

(declare-function contexture--ask "contexture" (method params))
(declare-function contexture-request-async "contexture-rpc")
(declare-function contexture-running-p "contexture-rpc" ())
(declare-function contexture--note-totals "contexture"
                  (manager items tokens version))
(declare-function project-root "project" (project))

(defcustom contexture-scope 'project
  "Layer to which commands add, unless `contexture-manager' is set.
`project' means the layer of the buffer's project or, outside of projects,
of its folder.  `buffer' means the layer of the buffer's file, of the
buffer itself if it visits no file, or of the conversation.  `shared'
means the layer for everywhere.  The items of all these layers are sent.
With a prefix argument, the commands that add ask for the layer; those
to which it means something else ask with two prefix arguments.

A function is called without arguments in the buffer, and returns the
name of the only context that the buffer then uses."
  :type '(choice (const :tag "Project" project)
                 (const :tag "File or buffer" buffer)
                 (const :tag "Everywhere" shared)
                 (function :tag "Function"))
  :group 'contexture)

(defvar-local contexture-manager nil
  "Name of the only context that this buffer's commands work on.
Nil means that the buffer has layers; see `contexture-scope'.  A list of
names, from the general to the special, means all these contexts.")

(defvar-local contexture--layers nil
  "Layers of this buffer as (KEY . LAYERS), once they are known.
KEY is the value of `contexture--layers-key' at that time.")

(defvar-local contexture--buffer-number nil
  "Name and number, a string, of this buffer, as the server knows them.")

(put 'contexture--buffer-number 'permanent-local t)

(defconst contexture--shared "*shared*"
  "Name of the context that belongs to no buffer.")

(defvar contexture--labels (make-hash-table :test #'equal)
  "Hash table from a context's name to its label, which users see.")

(defvar contexture--project-roots (make-hash-table :test #'equal)
  "Hash table from a directory to its project's root.
Directories without a project are not cached: they may get one.")

(defvar contexture--buffer-count 0
  "Number of buffers that have got a number.")

(defvar contexture--emacs-number nil
  "Prefix of the numbers of this Emacs's buffers; no other Emacs has it.")

(defconst contexture--choosing-layer
  '(contexture-add-dwim contexture-add-region contexture-add-buffer
    contexture-add-defun contexture-add-file contexture-add-symbol
    contexture-lisp-add-symbol contexture-lisp-add-inspector contexture-lisp-add-note
    contexture-slime-add-symbol contexture-slime-add-inspector contexture-slime-add-note
    contexture-sly-add-symbol contexture-sly-add-inspector contexture-sly-add-note)
  "Commands for which a prefix argument means to ask for the layer.")

(defconst contexture--choosing-layer-twice
  '(contexture-add-kill contexture-add-diagnostics contexture-add-diff
    contexture-add-compilation contexture-add-directory contexture-add-project)
  "Commands for which two prefix arguments mean to ask for the layer.
One means something else to them.")

;;;; Layers

(defun contexture--asking-buffer ()
  "Return the current buffer; in the minibuffer, the one it was called from."
  (if-let* ((window (and (minibufferp) (minibuffer-selected-window))))
      (window-buffer window)
    (current-buffer)))

(defun contexture--base-buffer ()
  "Return the current buffer, or its base if it is an indirect one."
  (or (buffer-base-buffer) (current-buffer)))

(defmacro contexture--in-asking-buffer (&rest body)
  "Run BODY in the buffer on whose context commands work."
  (declare (indent 0) (debug t))
  `(with-current-buffer (contexture--asking-buffer)
     (with-current-buffer (if contexture-manager (current-buffer)
                            (contexture--base-buffer))
       ,@body)))

(defun contexture--fixed-context ()
  "Return the name or names of this buffer's contexts if it has no layers."
  (or contexture-manager
      (unless (memq contexture-scope '(project buffer shared))
        (funcall contexture-scope))))

(defun contexture--layers-key ()
  "Return what the layers of this buffer depend on."
  (list buffer-file-name default-directory))

(defun contexture--known-layers ()
  "Return the layers of this buffer, or nil if they are not known yet.
This makes no call and runs no search, as a mode line needs it."
  (and (equal (car contexture--layers) (contexture--layers-key))
       (cdr contexture--layers)))

(defun contexture--layers ()
  "Return the layers of this buffer, plists from the general to the special."
  (or (and (consp contexture-manager) (contexture--layers-named contexture-manager))
      (contexture--known-layers)
      (contexture--note-layers
       (current-buffer) (contexture--layers-key)
       (contexture--ask 'open-layers (contexture--place-params)))))

(defun contexture--with-layers (function &optional failure)
  "Call FUNCTION without arguments as soon as this buffer's layers are known.
Emacs does not wait.  FAILURE is called with the error, if there is one."
  (contexture--in-asking-buffer
    (if (or (contexture--fixed-context) (contexture--known-layers))
        (funcall function)
      (let ((buffer (current-buffer))
            (key (contexture--layers-key)))
        (contexture-request-async
         'open-layers (contexture--place-params)
         :success (lambda (opened)
                    (when (buffer-live-p buffer)
                      (with-current-buffer buffer
                        (contexture--note-layers buffer key opened)
                        (funcall function))))
         :error (or failure #'contexture-show-error))))))

(defun contexture--asks-layer-p ()
  "Return non-nil if the user wants to choose the layer in this command."
  (cond ((memq this-command contexture--choosing-layer) current-prefix-arg)
        ((memq this-command contexture--choosing-layer-twice)
         (equal current-prefix-arg '(16)))))

(defun contexture--own-prefix ()
  "Return the prefix argument, or nil if it only asks for the layer."
  (unless (equal current-prefix-arg '(16)) current-prefix-arg))

(defun contexture--place-params ()
  "Return the parameters of `open-layers' for this buffer.
They name a buffer that got its file only now, so that its items go along."
  (let* ((file (and buffer-file-name (expand-file-name buffer-file-name)))
         (root (contexture--project-root))
         (folder (expand-file-name (if file (file-name-directory file)
                                     default-directory))))
    `(,@(if root (list :root root) (list :directory folder))
      ,@(and file (list :filename file))
      ,@(when (or (not file) contexture--buffer-number)
          (pcase-let ((`(,name . ,number) (contexture--numbered-buffer)))
            (list :buffer name :number number)))
      :formerly ,(delete-dups
                  (delq nil (list (buffer-name)
                                  (and file (file-name-nondirectory file))
                                  (and root (abbreviate-file-name root))))))))

(defun contexture--numbered-buffer ()
  "Return the name of this buffer when it was first asked for, and its number.
No other buffer of any Emacs has both."
  (unless contexture--emacs-number
    (setq contexture--emacs-number
          (format "%s-%x-%06x" (format-time-string "%s") (emacs-pid)
                  (random #x1000000))))
  (unless contexture--buffer-number
    (setq contexture--buffer-number
          (cons (buffer-name)
                (format "%s.%d" contexture--emacs-number
                        (cl-incf contexture--buffer-count))))
    (add-hook 'after-set-visited-file-name-hook #'contexture--got-file nil t))
  contexture--buffer-number)

(defun contexture--got-file ()
  "Let the items of this buffer, which had no file, go along to its file."
  (when (and buffer-file-name (contexture-running-p))
    (contexture--with-layers #'ignore #'ignore)))

(put 'contexture--got-file 'permanent-local-hook t)

(defun contexture--note-layers (buffer key opened)
  "Keep the layers in OPENED, a result of `open-layers', for BUFFER and KEY.
Return them."
  (let ((layers (plist-get opened :layers)))
    (dolist (layer layers)
      (puthash (plist-get layer :manager) (plist-get layer :label)
               contexture--labels)
      (contexture--note-totals (plist-get layer :manager) (plist-get layer :items)
                               (plist-get layer :tokens)
                               (plist-get layer :version)))
    (when (or (plist-get opened :taken-over) (plist-get opened :elsewhere))
      (contexture--tell-opened-layers opened))
    (with-current-buffer buffer
      (setq contexture--layers (cons key layers)))
    layers))

(defun contexture--forget-layers ()
  "Let all buffers ask for their layers again: some may have new names."
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when contexture--layers (setq contexture--layers nil)))))

(defun contexture--layer (layers &rest kinds)
  "Return the name of the first of LAYERS whose layer is in KINDS."
  (plist-get (cl-find-if (lambda (layer) (memq (plist-get layer :layer) kinds))
                         layers)
             :manager))

;;;; Which context

(defun contexture-current-manager ()
  "Return the name of the context to which commands in this buffer add."
  (contexture--in-asking-buffer
    (let ((fixed (contexture--fixed-context)))
      (cond ((stringp fixed) fixed)
            ((contexture--asks-layer-p)
             (contexture--choose-layer (contexture--layers)))
            ((eq contexture-scope 'shared) contexture--shared)
            (t (contexture--layer-to-add (contexture--layers)))))))

(defun contexture--layers-named (names)
  "Return the layers of a conversation whose contexts have NAMES.
The first is for everywhere and the last the conversation's own."
  (cl-loop for (name . more) on names
           collect (list :manager name
                         :label (gethash name contexture--labels name)
                         :layer (cond ((equal name contexture--shared) :everywhere)
                                      (more :project)
                                      (t :conversation)))))

(defun contexture--layer-to-add (layers)
  "Return the name of the one of LAYERS that `contexture-scope' chooses."
  (or (and (not (eq contexture-scope 'buffer)) (contexture--layer layers :project))
      (contexture--layer layers :file :buffer :conversation)))

(defun contexture-current-context ()
  "Return the name of this buffer's context, or the list of all its layers.
The layers are in order, from the general to the special."
  (contexture--in-asking-buffer
    (or (contexture--fixed-context)
        (contexture--names-of (contexture--layers)))))

(defun contexture--known-context ()
  "Return the value of `contexture-current-context' without any call.
Return nil if the layers are not known yet."
  (contexture--in-asking-buffer
    (or (contexture--fixed-context)
        (contexture--names-of (contexture--known-layers)))))

(defun contexture--names-of (layers)
  "Return the names of the contexts of LAYERS."
  (mapcar (lambda (layer) (plist-get layer :manager)) layers))

(defun contexture--managers (context)
  "Return the names in CONTEXT, one name or a list of them."
  (ensure-list context))

(defun contexture--context-params (context)
  "Return the parameters by which a method reads CONTEXT."
  (if (listp context) (list :managers context) (list :manager context)))

(defun contexture--of-context-p (manager context)
  "Return non-nil if MANAGER is CONTEXT or one of its layers."
  (if (listp context) (member manager context) (equal manager context)))

(defun contexture--project-root ()
  "Return the absolute root of the project around this buffer, or nil.
Remote directories are not searched: that may take long."
  (unless (file-remote-p default-directory)
    (or (gethash default-directory contexture--project-roots)
        (when-let* ((project (project-current)))
          (puthash default-directory (expand-file-name (project-root project))
                   contexture--project-roots)))))

;;;; Labels

(defun contexture--label (context)
  "Return the name of CONTEXT, one name or a list of layers, for messages."
  (cond ((null context) "this buffer")
        ((listp context)
         (contexture--label (or (cadr context) (car context))))
        ((equal context contexture--shared) "the shared context")
        ((gethash context contexture--labels)
         (contexture--visible (gethash context contexture--labels)))
        ((get-buffer context) (concat "buffer " (contexture--visible context)))
        ((string-suffix-p "/" context) (concat "project " (contexture--visible context)))
        (t (contexture--visible context))))

(defun contexture--note-labels (entries)
  "Keep the labels in ENTRIES, a list of contexts; return ENTRIES."
  (dolist (entry entries entries)
    (when-let* ((label (plist-get entry :label)))
      (unless (gethash (plist-get entry :manager) contexture--labels)
        (puthash (plist-get entry :manager) label contexture--labels)))))

(defun contexture--capitalized (text)
  "Return TEXT with its first letter, and no other, as a capital."
  (concat (upcase (substring text 0 1)) (substring text 1)))

(provide 'contexture-scope)
;;; contexture-scope.el ends here
