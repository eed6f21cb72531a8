;;; contexture-repl-view.el --- What a conversation looks like  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The buffer of a conversation, from top to bottom: the conversation,
;; which cannot be edited; a line with the items of the context and their
;; tokens; and the prompt with the user's text.  Insertions above the
;; prompt leave point, the text at the prompt and its undo as they are.
;;
;; This file only draws; it calls no server.

;;; Code:

(require 'contexture-count)
(require 'contexture)
(require 'contexture-repl-markdown)

(defface contexture-repl-user '((t :inherit (bold font-lock-keyword-face)))
  "Face of the line above your messages."
  :group 'contexture-repl)

(defface contexture-repl-model '((t :inherit (bold font-lock-type-face)))
  "Face of the line above a model's messages."
  :group 'contexture-repl)

(defface contexture-repl-note '((t :inherit shadow))
  "Face of remarks, such as the cost of an answer."
  :group 'contexture-repl)

(defface contexture-repl-error '((t :inherit error))
  "Face of errors."
  :group 'contexture-repl)

(defface contexture-repl-reasoning '((t :inherit (italic shadow)))
  "Face of a model's reasoning before its answer."
  :group 'contexture-repl)

(defface contexture-repl-context '((t :inherit shadow))
  "Face of the line with the items of the context."
  :group 'contexture-repl)

(defface contexture-repl-prompt '((t :inherit minibuffer-prompt))
  "Face of the prompt."
  :group 'contexture-repl)

(defconst contexture-repl--prompt "> "
  "Prompt of a conversation.")

(cl-defstruct (contexture-repl--message (:constructor contexture-repl--make-message)
                                        (:copier nil))
  "A message that is shown.
ID is the server's, or nil while it is unknown; ROLE is a keyword and
TEXT the message's text.  FROM is a marker where it begins.  CHECKPOINT,
for a question, is the id of the checkpoint taken just before; ORIGIN is
where the code in it came from, see contexture-repl-block.el."
  id role text from checkpoint origin)

(defvar-local contexture-repl--session nil
  "The session of this buffer, as the server describes it.")

(defvar-local contexture-repl--messages nil
  "Messages that are shown, the newest first.")

(defvar-local contexture-repl--tail nil
  "Marker at the end of the conversation.")

(defvar-local contexture-repl--input nil
  "Marker at the start of the user's text.")

(defvar-local contexture-repl--items nil
  "Items of the context, as last reported.")

(defvar-local contexture-repl--stats nil
  "Size of the session, as last reported.")

(defvar-local contexture-repl--answered-by nil
  "Model that answered last, or nil.")

(defvar-local contexture-repl--providers nil
  "Providers, as last reported, or `none'.")

(defvar-local contexture-repl--log-length 0
  "Number of messages in the session's log, as last reported.")

(defvar-local contexture-repl--asking 0
  "Number of unanswered calls for the length of the log.")

(defvar-local contexture-repl--own-rollbacks 0
  "Number of rollbacks made here that the server has not announced yet.")

(defvar-local contexture-repl--settings nil
  "Plist of :model, :provider, :template, :manage and :phase chosen here.")

(defvar-local contexture-repl--tool-settings nil
  "Plist of :tools and :allowed-tools of the session, as last reported.")

(defvar-local contexture-repl--approvals nil
  "Undecided requests of models, the oldest first.")

(defvar-local contexture-repl--turn nil
  "Turn that is being answered, or nil.")

(defvar-local contexture-repl--preparing nil
  "Preparation of a turn, as (WHAT . QUESTION), or nil.
If the value has changed when the preparation is done, the turn was
cancelled.")

(declare-function contexture-repl-approve "contexture-repl-tool" (decision))
(declare-function contexture-repl-tools "contexture-repl-tool" (what &optional tool))

;;;; Changing what is above the prompt

(defun contexture-repl--lay-out ()
  "Draw an empty conversation in this buffer, which is empty."
  (let ((inhibit-read-only t) (buffer-undo-list t))
    (erase-buffer)
    (setq contexture-repl--messages nil
          contexture-repl--tail (copy-marker (point-min) t))
    (insert (apply #'propertize contexture-repl--prompt
                   'face 'contexture-repl-prompt
                   (contexture-repl--fixed 'rear-nonsticky t 'field 'prompt)))
    (setq contexture-repl--input (point-marker))
    (set-marker contexture-repl--tail (point-min)))
  (contexture-repl--draw-context))

(defun contexture-repl--fixed (&rest properties)
  "Return PROPERTIES plus those that make text read-only."
  `(read-only t front-sticky (read-only) ,@properties))

(defun contexture-repl--change (function)
  "Call FUNCTION, which changes the text above the prompt.
Point stays in place, and the change is not recorded for undo."
  (let ((before (marker-position contexture-repl--input)))
    (prog1 (let ((inhibit-read-only t)
                 (inhibit-modification-hooks t)
                 (buffer-undo-list t))
             (save-excursion
               (save-restriction (widen) (funcall function))))
      (contexture-repl--shift-undo
       (- (marker-position contexture-repl--input) before)))))

(defmacro contexture-repl--changing (&rest body)
  "Run BODY, which changes the text above the prompt."
  (declare (indent 0) (debug t))
  `(contexture-repl--change (lambda () ,@body)))

(defun contexture-repl--shift-undo (by)
  "Shift the positions in the undo list by BY characters."
  (unless (or (= by 0) (eq buffer-undo-list t))
    (setq buffer-undo-list
          (mapcar (lambda (entry) (contexture-repl--shift-entry entry by))
                  buffer-undo-list))))

(defun contexture-repl--shift-entry (entry by)
  "Return ENTRY of an undo list shifted by BY characters."
  (pcase entry
    ((pred integerp) (+ entry by))
    (`(,(and (pred integerp) beg) . ,(and (pred integerp) end))
     (cons (+ beg by) (+ end by)))
    (`(,(and (pred stringp) text) . ,(and (pred integerp) position))
     (cons text (if (< position 0) (- position by) (+ position by))))
    (`(nil ,property ,value ,beg . ,end)
     `(nil ,property ,value ,(+ beg by) . ,(+ end by)))
    (_ entry)))

(defun contexture-repl--busy-p ()
  "Return non-nil if a turn of this buffer is being answered or prepared."
  (and (or contexture-repl--turn contexture-repl--preparing) t))

;;;; Messages

(defun contexture-repl--add-message (role text &rest slots)
  "Draw TEXT, said by ROLE, as the last message, and return the message.
SLOTS are more slots of the message."
  (let ((message (apply #'contexture-repl--begin-message role slots)))
    (contexture-repl--add-text message text)
    message))

(defun contexture-repl--add-text (message text)
  "Draw TEXT below the conversation as the text of MESSAGE, the last one."
  (setf (contexture-repl--message-text message) text)
  (contexture-repl--changing
    (goto-char contexture-repl--tail)
    (contexture-repl--end-line)
    (let ((state (contexture-repl-markdown--begin
                  (contexture-repl--fixed 'contexture-message message))))
      (contexture-repl-markdown--insert state text)
      (contexture-repl-markdown--end state)
      (contexture-repl--end-line))))

(defun contexture-repl--begin-message (role &rest slots)
  "Draw the heading of a message of ROLE with SLOTS, and return the message."
  (let ((message (apply #'contexture-repl--make-message :role role slots)))
    (contexture-repl--changing
      (when (get-text-property (point-min) 'contexture-intro)
        (delete-region (point-min)
                       (next-single-property-change (point-min) 'contexture-intro
                                                    nil contexture-repl--tail)))
      (goto-char contexture-repl--tail)
      (unless (bobp) (insert (apply #'propertize "\n" (contexture-repl--fixed))))
      (setf (contexture-repl--message-from message) (copy-marker (point)))
      (insert (apply #'propertize (concat (contexture-repl--role-name role) "\n")
                     'face (if (eq role :user) 'contexture-repl-user
                             'contexture-repl-model)
                     'contexture-heading t
                     (contexture-repl--fixed 'contexture-message message))))
    (push message contexture-repl--messages)
    message))

(defun contexture-repl--role-name (role)
  "Return the heading of a message of ROLE."
  (pcase role
    (:user "You")
    (:assistant (contexture--visible (or (contexture-repl--model) "Model")))
    (:tool "Tool")
    (_ (capitalize (contexture--name role)))))

(defun contexture-repl--end-line ()
  "Insert a newline unless point is at the beginning of a line."
  (unless (bolp) (insert (apply #'propertize "\n" (contexture-repl--fixed)))))

(defun contexture-repl--retitle (message name)
  "Set the heading of MESSAGE to NAME."
  (contexture-repl--changing
    (goto-char (contexture-repl--message-from message))
    (let ((properties (text-properties-at (point))))
      (forward-char)                    ; the marker stays before it
      (insert (apply #'propertize (contexture--visible name) properties))
      (delete-region (point) (line-end-position))
      (delete-region (contexture-repl--message-from message)
                     (1+ (contexture-repl--message-from message))))))

(defun contexture-repl--note (text &optional face &rest properties)
  "Draw TEXT, a remark, below the conversation, in FACE and with PROPERTIES."
  (contexture-repl--changing
    (goto-char contexture-repl--tail)
    (contexture-repl--end-line)
    (insert (apply #'propertize (concat (contexture--visible text t) "\n")
                   'face (or face 'contexture-repl-note) 'wrap-prefix "  "
                   'contexture-note t
                   (apply #'contexture-repl--fixed properties)))))

(defun contexture-repl--delete-from (message)
  "Remove MESSAGE and everything after it from the buffer."
  (contexture-repl--changing
    (delete-region (contexture-repl--message-from message) contexture-repl--tail)
    (goto-char contexture-repl--tail)
    (when (and (eq (char-before) ?\n) (not (bobp)))
      (delete-char -1)))                ; the line before the heading
  (setq contexture-repl--messages
        (cdr (memq message contexture-repl--messages))))

(defun contexture-repl--message-at (position)
  "Return the message at POSITION, or the last one before it, or nil."
  (cl-find-if (lambda (message)
                (<= (contexture-repl--message-from message) position))
              contexture-repl--messages))

(defun contexture-repl--last (role)
  "Return the last message of ROLE, or nil."
  (cl-find role contexture-repl--messages :key #'contexture-repl--message-role))

(defun contexture-repl--number (id)
  "Return the position in the log, from 1, of the message ID, or nil."
  (if (and id (string-match "\\`msg-\\([0-9]+\\)\\'" id))
      (string-to-number (match-string 1 id))))

(defun contexture-repl--note-length (id)
  "Record that the log has the message ID, or do nothing if that is nil."
  (setq contexture-repl--log-length (max contexture-repl--log-length
                                         (or (contexture-repl--number id) 0))))

;;;; The line with the context

(defun contexture-repl--draw-context ()
  "Redraw the line above the prompt."
  (contexture-repl--changing
    (let ((start (marker-position contexture-repl--tail))
          (text (contexture-repl--context-text)))
      (delete-region start (- contexture-repl--input (length contexture-repl--prompt)))
      (goto-char start)
      (insert (apply #'propertize (concat (if (bobp) "" "\n") text "\n")
                     'contexture-context t
                     (contexture-repl--fixed 'field 'prompt)))
      (set-marker contexture-repl--tail start))))

(defun contexture-repl--context-text ()
  "Return the items of the context and their tokens, as one line."
  (let* ((tokens (cl-loop for item in contexture-repl--items
                          sum (or (plist-get item :tokens) 0)))
         (total (if contexture-repl--items
                    (contexture--size (length contexture-repl--items) tokens)
                  "empty; @ or /add adds something"))
         (chips (contexture-repl--chips (- (contexture-repl--width) (length total) 14))))
    (propertize (concat "Context: " chips (if (string-empty-p chips) "" "  ") total)
                'face 'contexture-repl-context
                'mouse-face 'highlight
                'help-echo "mouse-1, RET: list the items"
                'keymap contexture-repl-context-map)))

(defvar contexture-repl-context-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-list)
    (define-key map [mouse-1] #'contexture-list)
    map)
  "Keymap of the line with the context.")

(defun contexture-repl--width ()
  "Return the width of a line in this buffer.
Keep point in place: Emacs measures the width by selecting the window,
which sets point to that window's point."
  (if-let* ((window (get-buffer-window nil t)))
      (save-excursion (window-max-chars-per-line window))
    80))

;;;; What a window shows

(defun contexture-repl--show-end ()
  "Scroll windows that show only the prompt although they have room above.
Such windows result from sending or deleting a long text at the prompt;
what is drawn above the prompt would not be visible in them."
  (dolist (window (get-buffer-window-list nil nil t))
    (when (> (window-start window) contexture-repl--tail)
      (let ((start (save-excursion
                     (goto-char (point-max))
                     (vertical-motion (- 1 (window-body-height window)) window)
                     (point))))
        (when (< start (window-start window))
          (set-window-start window start t))))))

(defun contexture-repl--chips (width)
  "Return the items as text of at most WIDTH columns, with the number left out."
  (let ((items contexture-repl--items) (chips nil) (used 0) (more t))
    (while (and items more)
      (let ((chip (contexture-repl--chip (car items))))
        (if (or (null chips) (<= (+ used (length chip) 3) (- width 5)))
            (setq used (+ used (length chip) 3) items (cdr items)
                  chips (cons chip chips))
          (setq more nil))))
    (concat (mapconcat #'identity (nreverse chips) " ")
            (if items (format " +%d" (length items)) ""))))

(defun contexture-repl--chip (item)
  "Return a short description of ITEM with its tokens."
  (format "[%s%s %d]"
          (truncate-string-to-width
           (contexture--visible (contexture-repl--item-name item)) 30 nil nil "...")
          (pcase (plist-get item :state)
            (:stale " stale") (:missing " missing") (_ ""))
          (or (plist-get item :tokens) 0)))

(defun contexture-repl--item-name (item)
  "Return a short name for ITEM."
  (let* ((metadata (plist-get item :metadata))
         (file (plist-get metadata :filename))
         (start (plist-get metadata :start-line)))
    (cond ((plist-get metadata :symbol))
          (file (concat (file-name-nondirectory (directory-file-name file))
                        (if start (format ":%s" start) "")))
          ((plist-get metadata :buffer))
          (t (plist-get item :id)))))

;;;; The header line

(defun contexture-repl--model ()
  "Return the name of the model, or nil if it is not known."
  (or (plist-get contexture-repl--settings :model)
      (and (plist-get contexture-repl--settings :provider)
           (or (plist-get (contexture-repl--provider
                           (plist-get contexture-repl--settings :provider))
                          :model)
               (plist-get contexture-repl--settings :provider)))
      contexture-repl--answered-by
      (plist-get (or (cl-find-if (lambda (it) (plist-get it :default))
                                 (contexture-repl--known-providers))
                     (car (contexture-repl--known-providers)))
                 :model)
      (let ((model (plist-get contexture-repl--stats :model)))
        (and model (not (equal model "default")) model))))

(defun contexture-repl--provider (name)
  "Return the server's entry for the provider called NAME, or nil."
  (cl-find name (contexture-repl--known-providers) :test #'equal
           :key (lambda (it) (plist-get it :name))))

(defun contexture-repl--known-providers ()
  "Return the known providers."
  (and (listp contexture-repl--providers) contexture-repl--providers))

(defun contexture-repl--draw-header ()
  "Redraw the header line."
  (setq header-line-format
        (append
         (list " "
               (contexture-repl--header-part
                (plist-get contexture-repl--session :session)
                #'contexture-repl-switch-session "switch to another session")
               "  "
               (contexture-repl--header-part
                (or (contexture-repl--model) "no model chosen")
                #'contexture-repl-switch-model "choose another model")
               "  "
               (contexture-repl--header-part
                (contexture-repl--template-text)
                #'contexture-repl-toggle-managing
                "turn notes on or off; mouse-3: choose a template"
                #'contexture-repl-choose-template)
               "  ")
         (contexture-repl--header-tools)
         (list (contexture-repl--escape (contexture-repl--tokens-text))))
        mode-line-process (cond (contexture-repl--approvals ":approve?")
                                (contexture-repl--turn ":answering")))
  (force-mode-line-update))

(defun contexture-repl--header-tools ()
  "Return the part of the header line about tools."
  (append
   (when (plist-get contexture-repl--tool-settings :tools)
     (list (contexture-repl--header-part "tools" #'contexture-repl-tools
                                         "choose what models may do")
           "  "))
   (when contexture-repl--approvals
     (list (propertize (contexture-repl--header-part
                        (substitute-command-keys
                         "approve? \\<contexture-repl-mode-map>\\[contexture-repl-approve]")
                        #'contexture-repl-approve "decide what the model asks for")
                       'face 'warning)
           "  "))))

(defun contexture-repl--header-part (text command help &optional other)
  "Return TEXT for the header line; clicking it runs COMMAND, as HELP says.
OTHER is a command for the third mouse button, which takes the event."
  (propertize (contexture-repl--escape (or text ""))
              'mouse-face 'mode-line-highlight
              'help-echo (concat "mouse-1: " help)
              'keymap (let ((map (make-sparse-keymap)))
                        (define-key map [header-line mouse-1]
                          (lambda (event)
                            (interactive "e")
                            (select-window (posn-window (event-start event)))
                            (call-interactively command)))
                        (when other (define-key map [header-line mouse-3] other))
                        map)))

(defun contexture-repl--escape (text)
  "Return TEXT quoted for the header line."
  (replace-regexp-in-string "%" "%%" (contexture--visible text)))

(defun contexture-repl--template-text ()
  "Return the part of the header line about templates."
  (let ((template (plist-get contexture-repl--settings :template)))
    (if (plist-get contexture-repl--settings :manage)
        (format "notes: %s" (or template "default template"))
      "whole history")))

(defun contexture-repl--tokens-text ()
  "Return the part of the header line about tokens.
It is the count of what would be sent now."
  (contexture-count--text (plist-get contexture-repl--session :id)))

(defun contexture-repl--mode-line-count ()
  "Return the count for the mode line, such as \" 1,234/8,192\"."
  (if-let* ((short (contexture-count--short (plist-get contexture-repl--session :id))))
      (concat " " short)
    ""))

(provide 'contexture-repl-view)
;;; contexture-repl-view.el ends here
