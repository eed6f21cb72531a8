;;; contexture-repl-turn.el --- One question and its answer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; From the text at the prompt to the end of the answer: what the user is
;; writing, the tools that a model calls, the answer while it comes in, one
;; turn as a whole, and turns that are repeated or changed.

;;; Code:

(require 'contexture-repl-view)
(eval-when-compile (require 'subr-x))

(declare-function json-pretty-print-buffer "json" (&optional minimize))
(declare-function jsonrpc-notify "jsonrpc" (connection method params))
(declare-function jsonrpc-running-p "jsonrpc" (conn))
(declare-function contexture-repl--run-command "contexture-repl" (text))
(declare-function contexture-tools--named "contexture-tools" (name))
(declare-function contexture-tools--touches "contexture-tools" (tool))
(declare-function contexture-provider--when-ready "contexture-doctor" (function))
(declare-function contexture-repl--forget-no-model "contexture-repl" ())
(declare-function contexture-repl--open "contexture-repl" (session))
(declare-function contexture-repl--fetch-items "contexture-repl" ())
(defvar contexture-mention--longest-wait)
(defvar contexture--own-call)
(defvar contexture-repl--editing)

;;; What the user is writing

;; The text at the prompt, the history of such texts, and the file that
;; keeps the history, and each conversation's draft and settings, between
;; sessions of Emacs.  Only the user can read that file.  Another Emacs may write it
;; too, so it is read again before it is written.

(defcustom contexture-repl-history-file
  (locate-user-emacs-file "contexture-repl-history")
  "File for the input history, and for the drafts and settings of conversations.
Nil means keep nothing."
  :type '(choice file (const :tag "Keep nothing" nil))
  :group 'contexture-repl)

(defcustom contexture-repl-history-length 500
  "Maximum number of texts in the input history; the oldest are dropped."
  :type 'natnum
  :group 'contexture-repl)

(defconst contexture-repl--idle-seconds 2
  "Number of idle seconds after which the text at a prompt is saved.")

(defvar contexture-repl--history nil
  "Texts sent in any conversation, the newest first.")

(defvar contexture-repl--new-history nil
  "Texts sent since the history file was last written, the newest first.")

(defvar contexture-repl--used nil
  "Ids of conversations, the last used first; nil before the file was read.")

(defvar contexture-repl--read nil
  "Non-nil once the history was read from its file.")

(defvar-local contexture-repl--place nil
  "Index of the history entry that is at the prompt, or nil if none is.")

(defvar-local contexture-repl--unfinished nil
  "Text that was at the prompt before a history entry replaced it, or nil.")

(defvar-local contexture-repl--idle-timer nil
  "Timer that will save the text at the prompt, or nil.")

(defvar-local contexture-repl--kept nil
  "The draft and the settings that were saved last, as (DRAFT SETTINGS).")

;;;; The text

(defun contexture-repl--text ()
  "Return the text at the prompt."
  (buffer-substring-no-properties contexture-repl--input (point-max)))

(defun contexture-repl--set-text (text)
  "Replace the text at the prompt with TEXT, and move point after it."
  (let ((inhibit-read-only t))
    (goto-char (point-max))
    (delete-region contexture-repl--input (point-max))
    (insert text)
    (dolist (window (get-buffer-window-list nil nil t))
      (set-window-point window (point))))
  (contexture-repl--show-end))

(defun contexture-repl--give-back (text)
  "Put TEXT, which was not sent or not answered, before the text at the prompt.
If that text begins with TEXT, leave it as it is."
  (let ((since (contexture-repl--text)))
    (unless (string-prefix-p text since)
      (contexture-repl--set-text
       (if (string-blank-p since) text (concat text "\n\n" since))))))

(defun contexture-repl-newline ()
  "Insert a newline at point; above the prompt, at the end of the text there."
  (interactive)
  (when (< (point) contexture-repl--input) (goto-char (point-max)))
  (insert "\n"))

(defun contexture-repl--before-command ()
  "Move point to the end if text is about to be typed or yanked above the prompt."
  (when (and (< (point) contexture-repl--input)
             (memq this-command '(self-insert-command yank yank-pop)))
    (goto-char (point-max))))

;;;; History

(defun contexture-repl--remember (text)
  "Add TEXT to the history as its newest entry."
  (contexture-repl--read-file-once)
  (setq contexture-repl--history (contexture-repl--with-newest text contexture-repl--history)
        contexture-repl--new-history (cons text contexture-repl--new-history)
        contexture-repl--place nil
        contexture-repl--unfinished nil))

(defun contexture-repl--with-newest (text history)
  "Return HISTORY with TEXT as its newest entry and without other copies of it."
  (let ((longer (cons text (delete text (copy-sequence history)))))
    (seq-take longer contexture-repl-history-length)))

(defun contexture-repl-previous-input (count)
  "Replace the text at the prompt with the history entry COUNT entries back.
\\<contexture-repl-mode-map>\\[contexture-repl-next-input] goes \
forward again, in the end to the text that you had begun."
  (interactive "p")
  (contexture-repl--read-file-once)
  (let ((place (+ (or contexture-repl--place -1) count)))
    (cond ((>= place (length contexture-repl--history))
           (user-error "There is no older entry in the history"))
          ((< place -1)
           (user-error "There is no newer entry in the history")))
    (unless contexture-repl--place
      (setq contexture-repl--unfinished (contexture-repl--text)))
    (setq contexture-repl--place (and (>= place 0) place))
    (contexture-repl--set-text (if (>= place 0) (nth place contexture-repl--history)
                                 (or contexture-repl--unfinished "")))))

(defun contexture-repl-next-input (count)
  "Replace the text at the prompt with the history entry COUNT entries forward."
  (interactive "p")
  (contexture-repl-previous-input (- count)))

(defun contexture-repl-search-input (text)
  "Replace the text at the prompt with TEXT, chosen from the history.
If TEXT is empty, nothing was chosen."
  (interactive
   (progn (contexture-repl--read-file-once)
          (unless contexture-repl--history
            (user-error "You have sent no text yet; the history is empty"))
          (list (completing-read "Earlier input: " contexture-repl--history nil t))))
  (unless (string-empty-p text)
    (contexture-repl--set-text text)))

;;;; The file

(defun contexture-repl--read-file-once ()
  "Read the history from its file, unless it has been read."
  (unless contexture-repl--read
    (setq contexture-repl--read t
          contexture-repl--history (plist-get (contexture-repl--file-contents) :history))))

(defun contexture-repl--file-contents ()
  "Return the contents of the history file, or nil if it cannot be read.
They are a plist of :history, :drafts, :sessions, which has settings, and
:used, the ids of the conversations used last."
  (when (and contexture-repl-history-file (file-readable-p contexture-repl-history-file))
    (condition-case nil
        (with-temp-buffer
          (let ((coding-system-for-read 'utf-8-unix) (read-circle nil))
            (insert-file-contents contexture-repl-history-file))
          (let ((contents (read (current-buffer))))
            (and (proper-list-p contents) (keywordp (car contents)) contents)))
      (error nil))))

(defun contexture-repl--save (&optional session draft settings)
  "Write the history, and the DRAFT and SETTINGS of SESSION, to the history file.
SESSION is the name of a conversation, or nil for the history alone.  If
the file cannot be written, show a message."
  (when contexture-repl-history-file
    (condition-case problem
        (contexture-repl--merge-and-write session draft settings)
      (error (contexture--message "Contexture: cannot save input history and drafts: %s"
                      (error-message-string problem))))))

(defun contexture-repl--merge-and-write (session draft settings)
  "Merge the history, DRAFT and SETTINGS of SESSION into the history file.
The arguments are as for `contexture-repl--save'; signal an error on failure."
  (let* ((contents (contexture-repl--file-contents))
         (history (plist-get contents :history))
         (drafts (plist-get contents :drafts))
         (sessions (plist-get contents :sessions)))
    (dolist (text (reverse contexture-repl--new-history))
      (setq history (contexture-repl--with-newest text history)))
    (when session
      (setq drafts (contexture-repl--with-entry
                    session (and draft (not (string-blank-p draft)) draft) drafts)
            sessions (contexture-repl--with-entry session settings sessions)))
    (let* ((file (expand-file-name contexture-repl-history-file))
           (new (make-temp-file (concat file "."))) ; with mode 0600
           (coding-system-for-write 'utf-8-unix)
           (print-length nil) (print-level nil)
           (write-region-inhibit-fsync t))
      (condition-case problem
          (progn
            (write-region (prin1-to-string (list :history history :drafts drafts
                                                 :sessions sessions
                                                 :used (contexture-repl--merged-used
                                                        (plist-get contents :used))))
                          nil new nil 'quiet)
            (rename-file new file t))
        (error (ignore-errors (delete-file new))
               (signal (car problem) (cdr problem)))))
    (setq contexture-repl--new-history nil)))

(defun contexture-repl--merged-used (others)
  "Return the ids of the conversations used here, then those of OTHERS."
  (seq-take (seq-uniq (append contexture-repl--used others)) 200))

(defun contexture-repl--with-entry (key value alist)
  "Return ALIST with (KEY . VALUE) first, or without KEY if VALUE is nil.
Keep at most 200 entries."
  (let ((rest (cl-remove key alist :key #'car :test #'equal)))
    (seq-take (if value (cons (cons key value) rest) rest) 200)))

;;;; What is not sent

(defun contexture-repl--keep-draft ()
  "Save the draft and the settings of this conversation if they have changed."
  (when-let* ((name (plist-get contexture-repl--session :session)))
    (let ((state (list (if (contexture-repl--busy-p)
                           (contexture-repl--unanswered-text)
                         (contexture-repl--text))
                       contexture-repl--settings)))
      (unless (and (equal state contexture-repl--kept)
                   (null contexture-repl--new-history))
        (setq contexture-repl--kept (copy-tree state))
        (contexture-repl--save name (car state) (cadr state))))))

(defconst contexture-repl--kept-usages 50
  "Maximum number of answers of a conversation whose usage is saved.")

(defun contexture-repl--keep-usage (id model text)
  "Add MODEL and TEXT, the usage of the answer with ID, to the saved settings.
The server's log has neither of them.  Do nothing if ID is nil."
  (when id
    (setq contexture-repl--settings
          (plist-put contexture-repl--settings :usage
                     (seq-take (cons (list (contexture-repl--usage-key id) model text)
                                     (plist-get contexture-repl--settings :usage))
                               contexture-repl--kept-usages)))))

(defun contexture-repl--usage-key (id)
  "Return the key by which to save the usage of the answer with ID.
It includes the conversation's id: a branch inherits what is saved of another
conversation, and both can have messages with the same ID."
  (format "%s/%s" (plist-get contexture-repl--session :id) id))

(defun contexture-repl--bring-back ()
  "Restore the saved draft and settings of this buffer's conversation."
  (let* ((name (plist-get contexture-repl--session :session))
         (contents (contexture-repl--file-contents))
         (draft (cdr (assoc name (plist-get contents :drafts)))))
    (setq contexture-repl--settings
          (copy-sequence (cdr (assoc name (plist-get contents :sessions)))))
    (when (and draft (string-empty-p (contexture-repl--text)))
      (contexture-repl--set-text draft))
    (setq contexture-repl--kept
          (copy-tree (list (contexture-repl--text) contexture-repl--settings)))))

(defun contexture-repl--text-changed (_beg end _length)
  "Save the draft soon if END, the end of a change, is at the prompt.
In that case, also count again what would be sent."
  (when (>= end contexture-repl--input)
    (contexture-count--changed (plist-get contexture-repl--session :id) t))
  (when (and (>= end contexture-repl--input)
             (null contexture-repl--idle-timer))
    (setq contexture-repl--idle-timer
          (run-with-idle-timer contexture-repl--idle-seconds nil
                               #'contexture-repl--idle (current-buffer)))))

(defun contexture-repl--idle (buffer)
  "Save the draft of BUFFER, if that is live."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (cancel-timer contexture-repl--idle-timer)
      (setq contexture-repl--idle-timer nil)
      (contexture-repl--keep-draft))))

;;; What a model does, and may do

;; You can give a model tools to read and change the context.  Each call of
;; a tool, and its result, is one dim line of the conversation with details
;; to unfold.  Before a model uses a tool that you have not allowed, the
;; turn waits and a block asks you; you can answer there, from the prompt,
;; or later: nothing else waits for it.

(defface contexture-repl-tool '((t :inherit shadow))
  "Face of the lines that show which tools a model uses."
  :group 'contexture-repl)

(defface contexture-repl-approval '((t :inherit warning))
  "Face of the block that asks whether a model may use a tool."
  :group 'contexture-repl)

(defface contexture-repl-button '((t :inherit link))
  "Face of buttons in a conversation."
  :group 'contexture-repl)

(defconst contexture-repl--tools
  '("list_context" "read_context" "add_file" "add_text" "drop_context"
    "search_memory" "search_session")
  "Tools that the server has for models.")

(cl-defstruct (contexture-repl--approval (:constructor contexture-repl--make-approval)
                                         (:copier nil))
  "A model's request for approval to use TOOL with ARGUMENTS.
TEXT says what the call would do.  NUMBER is what the server calls the
request.  The markers FROM and TO are around the block that asks the user,
and later around the line with the decision."
  number tool text arguments from to)

(defconst contexture-repl-approval-buffer "*contexture: approval*"
  "Name of the buffer that shows a model's request in full.")

;;;; Lines with details

(defvar contexture-repl-fold-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-repl-toggle-details)
    (define-key map (kbd "TAB") #'contexture-repl-toggle-details)
    (define-key map [mouse-1] #'contexture-repl-toggle-details)
    map)
  "Keymap of the lines whose details can be shown and hidden.")

(defun contexture-repl--draw-fold (line details &rest properties)
  "Draw LINE at the end of the conversation, with hidden DETAILS.
For DETAILS and PROPERTIES, see `contexture-repl--fold'."
  (contexture-repl--changing
    (goto-char contexture-repl--tail)
    (contexture-repl--end-line)
    (insert (apply #'contexture-repl--fold line details properties))))

(defun contexture-repl--fold (line details &rest properties)
  "Return LINE with hidden DETAILS below it, both with text PROPERTIES.
Leave out DETAILS that are nil, blank or the end of LINE."
  (let* ((details (string-trim-right (or details "")))
         (foldp (not (or (string-empty-p details) (string-suffix-p details line))))
         (fixed (apply #'contexture-repl--fixed
                       'face (or (plist-get properties 'face) 'contexture-repl-tool)
                       'contexture-note t
                       (cl-loop for (name value) on properties by #'cddr
                                unless (eq name 'face) append (list name value)))))
    (concat
     (apply #'propertize (concat (if foldp "+ " "  ") line "\n")
            'wrap-prefix "    "
            (if foldp
                `( contexture-fold t mouse-face highlight
                   help-echo "RET, mouse-1: show or hide the details"
                   keymap ,contexture-repl-fold-map ,@fixed)
              fixed))
     (and foldp
          (apply #'propertize (concat (contexture-repl--details details) "\n")
                 'invisible t 'contexture-details t fixed)))))

(defconst contexture-repl--longest-details 20000
  "Maximum number of characters of the details of one line.")

(defun contexture-repl--details (text)
  "Return TEXT as details: indented, shortened, without long lines.
Emacs is slow with long lines even if they are hidden."
  (let ((shown (contexture--visible
                (substring text 0 (min (length text) contexture-repl--longest-details))
                t)))
    (concat
     (replace-regexp-in-string
      "^" "    " (replace-regexp-in-string "[^\n]\\{500\\}" "\\&\n" shown))
     (if (<= (length text) contexture-repl--longest-details) ""
       (format "\n    ... and %s more" (contexture--count (- (length text)
                                                             contexture-repl--longest-details)
                                                          "character"))))))

(defun contexture-repl-toggle-details (&optional event)
  "Show or hide the details of the line at point.
EVENT is the click, if there was one."
  (interactive (list last-nonmenu-event))
  (save-excursion
    (when (mouse-event-p event)
      (set-buffer (window-buffer (posn-window (event-start event))))
      (goto-char (posn-point (event-start event))))
    (unless (get-text-property (point) 'contexture-fold)
      (user-error "This line has no details"))
    (forward-line 0)
    (contexture-repl--changing
      (let* ((start (line-beginning-position 2))
             (end (next-single-property-change start 'contexture-details nil
                                               contexture-repl--tail))
             (hide (not (get-text-property start 'invisible)))
             (properties (text-properties-at (point))))
        (put-text-property start end 'invisible hide)
        (forward-char)
        (insert (apply #'propertize (if hide "+" "-") properties))
        (delete-region (1- (point)) (- (point) 2))))))

(defun contexture-repl--pretty (arguments)
  "Return the ARGUMENTS of a tool call as readable lines, or \"\" for none.
ARGUMENTS are JSON or Lisp data; JSON is pretty-printed."
  (cond ((null arguments) "")
        ((not (stringp arguments)) (string-trim-right (pp-to-string arguments)))
        ((string-match-p "\\`[ \t\n]*{[ \t\n]*}?[ \t\n]*\\'" arguments) "")
        (t (require 'json)
           (with-temp-buffer
             (insert arguments)
             (condition-case nil
                 (let ((inhibit-message t))
                   (json-pretty-print-buffer)
                   (contexture-repl--break-lines)
                   (buffer-string))
               (error arguments))))))

(defun contexture-repl--break-lines ()
  "Replace each \\n in this buffer, which is pretty-printed JSON, by a line end.
Indent what follows like the string.  Quotes in strings stay escaped, so
that no text can look like more arguments."
  (let ((column 0))
    (goto-char (point-min))
    (while (re-search-forward "\\\\\\(.\\)" nil t)
      (when (equal (match-string 1) "n")
        (let ((from (match-beginning 0)) (to (point)))
          (save-excursion
            (beginning-of-line)
            (when (looking-at " *\"[^\"\\]*\": \"")
              (setq column (- (match-end 0) (point)))))
          (delete-region from to)
          (insert "\n" (make-string column ?\s)))))))

(defun contexture-repl--one-line (text &optional width)
  "Return the beginning of TEXT on one line of at most WIDTH columns, or 60."
  (truncate-string-to-width
   (contexture--visible (string-trim (replace-regexp-in-string "[ \t\n]+" " " text)))
   (or width 60) nil nil "..."))

(defun contexture-repl--tool-name (params)
  "Return the name of the tool in PARAMS, from the server's notification."
  (contexture--visible (or (plist-get params :tool) (plist-get params :name)
                           (plist-get params :text) "a tool")))

(defun contexture-repl--draw-tool-call (params)
  "Draw the call of a tool that PARAMS, from the server, report."
  (let* ((given (plist-get params :arguments))
         (arguments (if (stringp given) given (contexture-repl--pretty given))))
    (contexture-repl--draw-fold
     (string-trim-right (format "calls %s %s" (contexture-repl--tool-name params)
                                (contexture-repl--one-line arguments 50)))
     (and (> (length arguments) 50) (contexture-repl--pretty given))
     'contexture-used t)))

(defun contexture-repl--draw-tool-result (params)
  "Draw the result of a tool that PARAMS, from the server, report.
Stop asking for approval of that tool, since it has run or failed."
  (dolist (approval contexture-repl--approvals)
    (when (equal (contexture-repl--approval-tool approval)
                 (contexture-repl--tool-name params))
      (contexture-repl--settle-approval approval "not decided")))
  (contexture-repl--draw-fold (contexture-repl--tool-result-line params) nil
                              'contexture-result t 'contexture-used t))

(defun contexture-repl--tool-result-line (params)
  "Return the line for the result of a tool that PARAMS, from the server, report."
  (let ((name (contexture-repl--tool-name params))
        (text (or (plist-get params :text) "")))
    (contexture-repl--one-line
     (if (string-prefix-p (concat name ":") text) text
       (format "%s: %s: %s" name
               (contexture--name (or (plist-get params :outcome) :done)) text))
     (- (contexture-repl--width) 4))))

(defun contexture-repl--add-results (message calls)
  "Add the texts of CALLS as details to the lines with tool results in MESSAGE.
CALLS are the plists of the turn's tool calls, in the order of the lines."
  (let ((at (marker-position (contexture-repl--message-from message))))
    (while (and calls
                (setq at (text-property-any at contexture-repl--tail
                                            'contexture-result t)))
      (let ((text (or (plist-get (car calls) :text) ""))
            (end (next-single-property-change at 'contexture-result nil
                                              contexture-repl--tail)))
        (save-excursion
          (goto-char at)
          (setq end (min end (line-beginning-position 2))))
        (when (or (> (length text) 40) (string-search "\n" text))
          (contexture-repl--changing
            (goto-char at)
            (insert (contexture-repl--fold
                     (string-trim (buffer-substring-no-properties at end)) text
                     'contexture-used t))
            (setq end (+ (point) (- end at)))
            (delete-region (point) end)
            (setq end (point))))
        (setq at end)
        (pop calls)))))

;;;; Requests for approval

(defvar contexture-repl-approval-map
  (let ((map (make-sparse-keymap)))
    (define-key map "y" #'contexture-repl-approve-once)
    (define-key map "a" #'contexture-repl-approve-always)
    (define-key map "n" #'contexture-repl-refuse)
    (define-key map "v" #'contexture-repl-view-approval)
    (define-key map (kbd "RET") #'contexture-repl-approve)
    (define-key map [mouse-1] #'contexture-repl-approve-click)
    map)
  "Keymap of the block that asks whether a model may use a tool.")

(defun contexture-repl--draw-approval (params)
  "Draw a block that asks about the request for approval in PARAMS."
  (let* ((approval (contexture-repl--make-approval
                    :number (plist-get params :approval)
                    :tool (contexture-repl--tool-name params)
                    :text (let ((text
                                 (contexture-repl--one-line
                                  (or (plist-get params :text) "") 200))
                                (outside (plist-get params :outside)))
                            (if (member outside '(nil "")) text
                              (format "%s (outside the project: %s)" text
                                      (contexture-repl--one-line outside 200))))
                    :arguments (contexture--visible
                                (contexture-repl--pretty (plist-get params :arguments))
                                t))))
    (contexture-repl--changing
      (goto-char contexture-repl--tail)
      (contexture-repl--end-line)
      (let ((from (point)))
        (insert (contexture-repl--approval-block approval))
        (setf (contexture-repl--approval-from approval) (copy-marker from)
              (contexture-repl--approval-to approval) (copy-marker (point)))))
    (setq contexture-repl--approvals
          (append contexture-repl--approvals (list approval)))
    (contexture-repl--draw-header)
    (contexture--message "The model wants to use %s; %s decides"
             (contexture-repl--approval-tool approval)
             (substitute-command-keys "\\[contexture-repl-approve]"))))

(defun contexture-repl--approval-block (approval)
  "Return the block that asks about APPROVAL: its text, arguments and buttons."
  (let ((block (concat
                (propertize (format "The model wants to use %s: %s\n"
                                    (contexture-repl--approval-tool approval)
                                    (contexture-repl--approval-text approval))
                            'face 'contexture-repl-approval 'wrap-prefix "  ")
                (contexture-repl--approval-place approval)
                (contexture-repl--approval-details approval)
                "  " (contexture-repl--approval-button "[y] once" 'once) "  "
                (contexture-repl--approval-button "[a] always" 'always) "  "
                (contexture-repl--approval-button "[n] refuse" 'refuse) "\n")))
    (add-text-properties
     0 (length block)
     (contexture-repl--fixed 'contexture-approval approval
                             'keymap contexture-repl-approval-map)
     block)
    block))

(defun contexture-repl--approval-place (approval)
  "Return a line with the project in which APPROVAL is asked, and with its Lisp."
  (let ((project (plist-get contexture-repl--session :project))
        (touches (and (fboundp 'contexture-tools--touches)
                      (when-let* ((tool (contexture-tools--named
                                         (contexture-repl--approval-tool approval))))
                        (contexture-tools--touches tool)))))
    (propertize
     (format "  In %s%s\n"
             (if project (concat "the project " (contexture--visible
                                                 (contexture--abbreviate project)))
               "no project")
             (if touches (format "; it reaches %s" (contexture--visible touches)) ""))
     'face 'contexture-repl-tool)))

(defun contexture-repl--approval-details (approval)
  "Return the arguments of APPROVAL as at most 12 indented lines.
If there is more, a last line names the key that shows all of it."
  (let* ((text (contexture-repl--approval-arguments approval))
         (shown (let ((width (- (contexture-repl--width) 6)))
                  (mapconcat (lambda (line)
                               (truncate-string-to-width line width))
                             (seq-take (split-string text "\n") 12) "\n"))))
    (if (string-empty-p text) ""
      (propertize (concat (replace-regexp-in-string "^" "  " shown)
                          (if (equal shown text) ""
                            (format "\n  ... v shows all of it, %s"
                                    (contexture--count (length text) "character")))
                          "\n")
                  'face 'contexture-repl-tool))))

(defun contexture-repl-view-approval ()
  "Show the model's request in full, in its own buffer."
  (interactive)
  (let ((approval (contexture-repl--approval-here)))
    (with-current-buffer (get-buffer-create contexture-repl-approval-buffer)
      (let ((inhibit-read-only t))
        (special-mode)
        (erase-buffer)
        (insert (contexture-repl--approval-tool approval) ": "
                (contexture-repl--approval-text approval) "\n\n"
                (contexture-repl--approval-arguments approval) "\n")
        (goto-char (point-min)))
      (pop-to-buffer (current-buffer)))))

(defun contexture-repl--approval-button (label decision)
  "Return LABEL as a button for DECISION: `once', `always' or `refuse'."
  (propertize label 'face 'contexture-repl-button 'mouse-face 'highlight
              'contexture-decision decision
              'help-echo (concat "mouse-1: " label)))

(defun contexture-repl--approval-here ()
  "Return the model's request at point, or else the oldest undecided one.
Signal an error if there is none."
  (or (get-text-property (point) 'contexture-approval)
      (car contexture-repl--approvals)
      (user-error "No request is waiting for your decision")))

(defun contexture-repl-approve (decision)
  "Decide on the model's request at point, or else on the oldest one.
DECISION is `once', `always' (allow this tool in this conversation from now
on), or `refuse'.  Interactively, take it from the button at point, or ask."
  (interactive
   (list (or (get-text-property (point) 'contexture-decision)
             (contexture-repl--read-decision (contexture-repl--approval-here)))))
  (contexture-repl--rule (contexture-repl--approval-here) decision))

(defun contexture-repl--read-decision (approval)
  "Ask the user to decide on APPROVAL; return `once', `always' or `refuse'."
  (pcase (prog1 (read-char-choice
                 (format "%s: %s  [y] once  [a] always  [n] refuse "
                         (contexture-repl--approval-tool approval)
                         (contexture-repl--approval-text approval))
                 '(?y ?a ?n))
           (message nil))               ; else the question stays in the echo area
    (?y 'once) (?a 'always) (_ 'refuse)))

(defun contexture-repl-approve-once ()
  "Allow the model's request at point, or else the oldest one, this time only."
  (interactive)
  (contexture-repl-approve 'once))

(defun contexture-repl-approve-always ()
  "Allow a tool in this conversation, now and from now on without asking.
It is the tool of the model's request at point, or else of the oldest one."
  (interactive)
  (contexture-repl-approve 'always))

(defun contexture-repl-refuse ()
  "Refuse the model's request at point, or else the oldest one."
  (interactive)
  (contexture-repl-approve 'refuse))

(defun contexture-repl-approve-click (event)
  "Decide as the button says on which EVENT clicked; elsewhere do nothing."
  (interactive "e")
  (with-current-buffer (window-buffer (posn-window (event-start event)))
    (let* ((position (posn-point (event-start event)))
           (decision (get-text-property position 'contexture-decision)))
      (when decision
        (contexture-repl--rule (get-text-property position 'contexture-approval)
                                 decision)))))

(defun contexture-repl--rule (approval decision)
  "Send the DECISION on APPROVAL, and show it in place of the block.
Show it as made only once the server has accepted it.  The call is never
repeated on another server: a server that replaces one that died asks
again, with other numbers."
  (unless (memq approval contexture-repl--approvals)
    (user-error "You have already decided on this request"))
  (pcase-let ((`(,telling ,told)
               (pcase decision
                 ('once '("allowing it once..." "allowed once"))
                 ('always '("allowing it from now on..." "allowed from now on"))
                 (_ '("refusing it..." "refused")))))
    (contexture-repl--decided approval telling)
    (let ((contexture--own-call t))
      (contexture-repl--request
       'approve (list :approval (contexture-repl--approval-number approval)
                      :decision (intern (format ":%s" decision)))
       (lambda (_)
         (contexture-repl--settle-approval approval told)
         (when (eq decision 'always) (contexture-repl--fetch-settings)))
       (apply-partially #'contexture-repl--not-decided approval)))))

(defun contexture-repl--not-decided (approval problem)
  "Handle PROBLEM, for which the server did not accept a decision on APPROVAL.
Show PROBLEM and ask again, unless the server no longer waits for a decision."
  (if (or (null contexture-repl--turn)
          (eq (plist-get (plist-get problem :data) :kind) :no-such-approval))
      (contexture-repl--settle-approval
       approval "not decided; the server no longer waits for a decision")
    (contexture-repl--replace-block approval (contexture-repl--approval-block approval))
    (push approval contexture-repl--approvals)
    (contexture-repl--draw-header)
    (contexture-repl--show-problem problem)))

(defun contexture-repl--settle-approval (approval outcome)
  "Replace the block of APPROVAL with OUTCOME, a phrase, for good."
  (contexture-repl--decided approval outcome)
  (set-marker (contexture-repl--approval-from approval) nil)
  (set-marker (contexture-repl--approval-to approval) nil))

(defun contexture-repl--decided (approval words)
  "Stop asking about APPROVAL, and show WORDS, a phrase, in place of its block."
  (setq contexture-repl--approvals (delq approval contexture-repl--approvals))
  (contexture-repl--replace-block
   approval
   (apply #'propertize
          (format "  %s: %s\n" (contexture-repl--approval-tool approval) words)
          'face 'contexture-repl-tool 'contexture-note t (contexture-repl--fixed)))
  (contexture-repl--draw-header))

(defun contexture-repl--replace-block (approval text)
  "Show TEXT in place of the block of APPROVAL, if that is still there."
  (let ((from (contexture-repl--approval-from approval))
        (to (contexture-repl--approval-to approval)))
    (when (and (marker-position from) (< from to))
      (contexture-repl--changing
        (goto-char from)
        (insert text)
        (delete-region (point) to)))))

(defun contexture-repl--drop-approvals ()
  "Stop asking about undecided requests, for which the server no longer waits."
  (dolist (approval contexture-repl--approvals)
    (contexture-repl--settle-approval approval "not decided")))

;;;; Settings that the server keeps

(defvar-local contexture-repl--configuring 0
  "Number of unanswered calls that store or fetch settings.")

(defun contexture-repl--configure (&rest settings)
  "Store SETTINGS, keywords and values, for this conversation on the server.
Show the settings in effect, which the server returns."
  (contexture-repl--configure-then settings #'ignore #'ignore))

(defun contexture-repl--configure-then (settings done refused)
  "Store SETTINGS, a plist, for this conversation, and show those in effect.
Then call DONE, or REFUSED if the server refuses the settings.  Without
SETTINGS, only fetch and show those in effect."
  (cl-incf contexture-repl--configuring)
  (contexture-repl--request
   'configure-session
   (append (list :session (contexture-repl--session-id)) settings
           (and settings (list :request-key (contexture--make-request-key))))
   (lambda (result)
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
       (contexture-repl--draw-header))
     (funcall done))
   (lambda (problem)
     (cl-decf contexture-repl--configuring)
     (when settings
       (contexture-repl--show-problem problem)
       (funcall refused)
       (contexture-repl--fetch-settings)))))

(defun contexture-repl--fetch-settings ()
  "Fetch the settings in effect for this conversation, and show them."
  (contexture-repl--configure))

(defun contexture-repl--take (key value)
  "Set KEY of this conversation's settings to VALUE, in this buffer only."
  (setq contexture-repl--settings (plist-put contexture-repl--settings key value)))

(defun contexture-repl--choose (key value)
  "Set KEY of this conversation's settings to VALUE, and save it to the file."
  (contexture-repl--take key value)
  (contexture-repl--draw-header)
  (contexture-repl--keep-draft))

;;;; Choose tools

(defun contexture-repl-tools (what &optional tool)
  "Choose which tools models may use in this conversation.
WHAT is `on', `off', `allow' or `ask'.  `on' offers the server's tools and
asks you before each use; `off' offers none of them.  `allow' lets models use
TOOL without asking you, and `ask' has them ask you again."
  (interactive
   (let ((what (intern (completing-read "Tools: " '("on" "off" "allow" "ask") nil t))))
     (list what (when (memq what '(allow ask))
                  (completing-read "Tool: " (contexture-repl--tool-choices what)
                                   nil t)))))
  ;; The server takes only the names of tools that there are now.
  (let ((allowed (seq-intersection (contexture-repl--allowed-tools)
                                   (contexture-repl--all-tools))))
    (when (and (memq what '(allow ask)) (not (member tool (contexture-repl--all-tools))))
      (contexture--user-error "There is no tool %s; the tools are %s" tool
                  (mapconcat #'identity (contexture-repl--all-tools) ", ")))
    (pcase what
      ('on (contexture-repl--configure :tools t))
      ('off (contexture-repl--configure :tools []))
      ('allow (contexture-repl--configure
               :allowed-tools (vconcat (remove tool allowed) (list tool))))
      ('ask (contexture-repl--configure
             :allowed-tools (vconcat (remove tool allowed))))
      (_ (user-error "/tools takes on, off, list, allow NAME or ask NAME")))))

(defun contexture-repl--all-tools ()
  "Return the names of the server's tools, and of Emacs's tools that are on."
  (append contexture-repl--tools
          (and contexture-tools (fboundp 'contexture-tools--names)
               (contexture-tools--names))))

(defun contexture-repl--allowed-tools ()
  "Return the names of the tools that need no approval in this conversation."
  (mapcar #'contexture--name (plist-get contexture-repl--tool-settings :allowed-tools)))

(defun contexture-repl--tool-choices (what)
  "Return the names of the tools to which WHAT, `allow' or `ask', can apply."
  (let ((allowed (contexture-repl--allowed-tools)))
    (if (eq what 'ask) allowed
      (cl-set-difference (contexture-repl--all-tools) allowed :test #'equal))))

(defun contexture-repl--tools-text ()
  "Return lines that list the tools, and whether models may use each here."
  (let ((tools (plist-get contexture-repl--tool-settings :tools))
        (allowed (contexture-repl--allowed-tools)))
    (mapconcat
     #'identity
     (append
      (list (if tools "Models are offered these tools (/tools off offers none):"
              "Models are offered no tools (/tools on offers these):"))
      (mapcar (lambda (tool)
                (format "  %-15s %s" tool
                        (cond ((member tool allowed) "without asking")
                              ((or (memq tools '(nil t))
                                   (member tool (mapcar #'contexture--name tools)))
                               "asks each time")
                              (t "not offered"))))
              contexture-repl--tools)
      (and contexture-tools (fboundp 'contexture-tools--entry-text)
           (cons "They may call these tools of Emacs (M-x contexture-tools-off turns them off):"
                 (mapcar (lambda (entry)
                           (concat "  " (contexture-tools--entry-text entry)))
                         contexture-tools))))
     "\n")))

;;; Draw an answer as it comes in

;; Thousands of pieces of an answer may arrive in a second.  They are only
;; queued on arrival, and drawn together about thirty times a second, never
;; for long, so that Emacs answers keys in between.  If the server goes away
;; during a turn, the connection repeats the call, and the partial answer is
;; removed.

(defcustom contexture-repl-show-reasoning t
  "Non-nil means show a model's reasoning before its answer."
  :type 'boolean
  :group 'contexture-repl)

(defconst contexture-repl--draw-seconds 0.03
  "Number of seconds after which pieces of an answer that arrived are drawn.")

(defconst contexture-repl--draw-at-once 0.01
  "Number of seconds after which to stop drawing and let Emacs handle input.")

(defconst contexture-repl--draw-characters 2000
  "Maximum number of characters of an answer to draw at once.")

(cl-defstruct (contexture-repl--turn (:constructor contexture-repl--make-turn)
                                     (:copier nil))
  "A question that is being answered in BUFFER.
TEXT is the question, QUESTION its message, and KEY its request key.  ID is
the id of the call of `chat' on CONNECTION, or nil before that is made.
ANSWER is the answer's message, or nil until something of it is drawn.
Uses of tools, and retries of the provider, divide the answer into parts.
EARLIER are the texts of the finished parts, the last one first.  STATE is
the drawing state of the current part, or nil; START is a marker where that
part begins, and PIECES are its drawn texts, the newest first.
PENDING are the pieces not drawn yet, each (KIND . TEXT) or (KIND . PARAMS),
the newest first; TIMER will draw them.  NOTES are remarks to show at the
end.  ASKED is non-nil if the server was asked to stop.  MENTIONED is what
the question mentions, or nil, and MANAGERS the contexts sent with it."
  buffer text question mentioned managers key id connection answer earlier state start pieces
  pending timer notes asked)

(defvar contexture-repl--turns nil
  "Turns that are being answered, in all buffers, the newest first.")

;;;; Pieces

(defun contexture-repl--progress (method params)
  "Queue the piece of an answer in PARAMS if METHOD is `progress'.
PARAMS name the turn.  A status, and a retry before the answer has begun, are
remarks instead; see `contexture-repl--tell'."
  (when (eq method 'progress)
    (when-let* ((turn (cl-find (plist-get params :id) contexture-repl--turns
                               :key #'contexture-repl--turn-id)))
      (pcase (plist-get params :kind)
        ((and (or :text :reasoning) kind)
         (push (cons kind (or (plist-get params :text) ""))
               (contexture-repl--turn-pending turn))
         (contexture-repl--draw-soon turn))
        ((and (or :tool-call :tool-result :approval) kind)
         (push (cons kind params) (contexture-repl--turn-pending turn))
         (contexture-repl--draw-soon turn))
        (:retry (if (not (or (contexture-repl--turn-answer turn)
                             (contexture-repl--turn-pending turn)))
                    (contexture-repl--tell turn (plist-get params :text))
                  (push (cons :retry params)
                        (contexture-repl--turn-pending turn))
                  (contexture-repl--draw-soon turn)))
        (:status (contexture-repl--tell turn (plist-get params :text)))))))

(defun contexture-repl--tell (turn text)
  "Show TEXT, a remark about TURN; do nothing if it is nil.
If the answer has begun, show it after the answer, else now."
  (let ((buffer (contexture-repl--turn-buffer turn)))
    (when (and text (buffer-live-p buffer))
      (with-current-buffer buffer
        (if (or (contexture-repl--turn-answer turn)
                (contexture-repl--turn-pending turn))
            (push text (contexture-repl--turn-notes turn))
          (contexture-repl--note text))))))

(defun contexture-repl--draw-soon (turn)
  "Schedule drawing the pending pieces of TURN."
  (unless (contexture-repl--turn-timer turn)
    (setf (contexture-repl--turn-timer turn)
          (run-at-time contexture-repl--draw-seconds nil
                       #'contexture-repl--draw-pending turn))))

(defun contexture-repl--draw-pending (turn)
  "Draw the pending pieces of TURN; if there are many, only the first ones.
The others are drawn a little later."
  (when-let* ((timer (contexture-repl--turn-timer turn)))
    (cancel-timer timer)
    (setf (contexture-repl--turn-timer turn) nil))
  (when (and (contexture-repl--turn-pending turn)
             (buffer-live-p (contexture-repl--turn-buffer turn)))
    (let ((pieces (nreverse (contexture-repl--turn-pending turn)))
          (end (+ (float-time) contexture-repl--draw-at-once)))
      (setf (contexture-repl--turn-pending turn) nil)
      (with-current-buffer (contexture-repl--turn-buffer turn)
        (while (progn (setq pieces (if (stringp (cdar pieces))
                                       (contexture-repl--draw-texts turn pieces)
                                     (contexture-repl--draw-use turn
                                                                (caar pieces)
                                                                (cdar pieces))
                                     (cdr pieces)))
                      (and pieces (< (float-time) end))))
        (contexture-repl--tell-watch turn 'more))
      (when pieces
        (setf (contexture-repl--turn-pending turn) (nreverse pieces))
        (contexture-repl--draw-soon turn)))))

(defun contexture-repl--watcher (turn)
  "Return the function that is told of the answer of TURN, or nil."
  (when-let* ((origin (contexture-repl--message-origin
                       (contexture-repl--turn-question turn))))
    (contexture-repl--origin-watch origin)))

(defun contexture-repl--tell-watch (turn state &optional answer)
  "Call the watcher of TURN, if any, with ANSWER and STATE.
ANSWER defaults to what is drawn so far; STATE is `more', `done' or `failed'."
  (when-let* ((watch (contexture-repl--watcher turn)))
    (funcall watch (or answer (contexture-repl--so-far turn)) state)))

(defun contexture-repl--draw-texts (turn pieces)
  "Draw the texts of one kind at the head of TURN's PIECES; return the rest.
Draw at most `contexture-repl--draw-characters'."
  (let ((room contexture-repl--draw-characters) (kind (caar pieces)) texts)
    (while (and pieces (> room 0) (eq kind (caar pieces)))
      (let ((text (cdr (pop pieces))))
        (when (> (length text) room)
          (push (cons kind (substring text room)) pieces)
          (setq text (substring text 0 room)))
        (setq room (- room (max 1 (length text))))
        (push text texts)))
    (contexture-repl--draw turn kind (apply #'concat (nreverse texts)))
    pieces))

(defun contexture-repl--when-drawn (turn function argument)
  "Call FUNCTION with TURN and ARGUMENT once all of TURN's pieces are drawn.
Return nil, without calling FUNCTION, if they are drawn now.  Otherwise
return non-nil: FUNCTION is called later, so that Emacs handles input in
between."
  (contexture-repl--draw-pending turn)
  (when (contexture-repl--turn-pending turn)
    (let ((buffer (current-buffer)))
      (run-at-time contexture-repl--draw-seconds nil
                   (lambda ()
                     (when (and (buffer-live-p buffer)
                                (memq turn contexture-repl--turns))
                       (with-current-buffer buffer
                         (funcall function turn argument))))))))

(defun contexture-repl--draw (turn kind text)
  "Draw TEXT, the next piece of TURN's answer, in this buffer.
KIND is `:text' or `:reasoning'; the latter is not drawn after a part's text."
  (unless (or (string-empty-p text)
              (and (eq kind :reasoning) (not contexture-repl-show-reasoning)))
    (contexture-repl--begin-answer turn)
    (contexture-repl--changing
      (goto-char contexture-repl--tail)
      (if (eq kind :reasoning)
          (unless (contexture-repl--turn-state turn)
            (insert (apply #'propertize (contexture--visible text t)
                           'face 'contexture-repl-reasoning
                           'contexture-reasoning t
                           (contexture-repl--fixed))))
        (unless (contexture-repl--turn-state turn)
          (contexture-repl--end-line)
          (setf (contexture-repl--turn-start turn) (copy-marker (point))
                (contexture-repl--turn-state turn)
                (contexture-repl-markdown--begin (contexture-repl--fixed))))
        (push text (contexture-repl--turn-pieces turn))
        (contexture-repl-markdown--insert (contexture-repl--turn-state turn) text)))))

(defun contexture-repl--draw-use (turn kind params)
  "Draw what PARAMS, of KIND, report of TURN between texts of its answer.
KIND is `:tool-call', `:tool-result', `:approval' or `:retry'."
  (contexture-repl--begin-answer turn)
  (contexture-repl--end-part turn)
  (funcall (pcase kind
             (:tool-call #'contexture-repl--draw-tool-call)
             (:tool-result #'contexture-repl--draw-tool-result)
             (:retry (lambda (params)
                       (when-let* ((text (plist-get params :text)))
                         (contexture-repl--note text))))
             (_ #'contexture-repl--draw-approval))
           params))

(defun contexture-repl--end-part (turn)
  "Finish the current part of TURN's answer, if there is one."
  (when-let* ((state (contexture-repl--turn-state turn)))
    (contexture-repl--changing
      (goto-char contexture-repl--tail)
      (contexture-repl-markdown--end state))
    (push (contexture-repl--last-part turn) (contexture-repl--turn-earlier turn))
    (setf (contexture-repl--turn-state turn) nil
          (contexture-repl--turn-pieces turn) nil)))

(defun contexture-repl--last-part (turn)
  "Return the drawn text of the current part of TURN's answer, or \"\"."
  (apply #'concat (reverse (contexture-repl--turn-pieces turn))))

(defun contexture-repl--begin-answer (turn)
  "Draw the heading of TURN's answer, unless the answer has begun."
  (unless (contexture-repl--turn-answer turn)
    (setf (contexture-repl--turn-answer turn)
          (contexture-repl--begin-message :assistant))))

(defun contexture-repl--asked-again ()
  "Remove partial answers after a reconnection, which repeats the calls.
The server that was giving the answers is gone, and the new one begins
anew.  Cancel again the calls that were cancelled before."
  (dolist (turn contexture-repl--turns)
    (when (contexture-repl--turn-id turn)
      (setf (contexture-repl--turn-pending turn) nil)
      (when (and (contexture-repl--turn-answer turn)
                 (buffer-live-p (contexture-repl--turn-buffer turn)))
        (with-current-buffer (contexture-repl--turn-buffer turn)
          (contexture-repl--drop-approvals)
          (contexture-repl--delete-from (contexture-repl--turn-answer turn))
          (setf (contexture-repl--turn-answer turn) nil
                (contexture-repl--turn-earlier turn) nil
                (contexture-repl--turn-state turn) nil
                (contexture-repl--turn-pieces turn) nil)
          (contexture-repl--note "The connection to the server was lost; the question was sent again.")))
      (when (contexture-repl--turn-asked turn)
        (contexture-repl--send-cancel turn)))))

;;; One question and its answer

;; Sends the text at the prompt, has the answer drawn while it comes, and
;; ends the turn with an answer, an error, or a cancellation.  A question
;; that was not answered goes back to the prompt.

(defcustom contexture-repl-checkpoints t
  "Non-nil means take a checkpoint before each question.
Asking again, changing a question and branching go back to checkpoints."
  :type 'boolean
  :group 'contexture-repl)

(defvar contexture-repl-turn-ended-hook nil
  "Hook run in a conversation's buffer when a turn has ended, answered or not.")

(defcustom contexture-repl-answered-hook nil
  "Normal hook run in a conversation's buffer when an answer is complete."
  :type 'hook
  :group 'contexture-repl)

;;;; Sending

(defconst contexture-repl--directive "@context-helper "
  "Prefix of a question that names its own template.")

(defconst contexture-repl--own-template "\\`[ \t]*@context-helper[ \t]+[^ \t\n]+"
  "Regexp for the beginning of a question that names its own template.")

(defun contexture-repl-send ()
  "Send the text at the prompt, or run it if it is a slash command.
If point is above the prompt, only move it to the end of the text there."
  (interactive)
  (cond ((< (point) contexture-repl--input) (goto-char (point-max)))
        ((string-blank-p (contexture-repl--text))
         (user-error "Write something at the prompt first"))
        ((contexture-repl--command-p (contexture-repl--text))
         (contexture-repl--run-command (contexture-repl--text)))
        (t (contexture-repl--check-idle)
           (contexture-repl--send-text
            ;; With the properties of its mentions.
            (string-trim (buffer-substring contexture-repl--input (point-max)))))))

(defun contexture-repl--command-p (text)
  "Return non-nil if TEXT is a slash command, and not a path such as /tmp/x."
  (string-match-p "\\`/[a-z-]*\\(?:[ \t]\\|[ \t\n]*\\'\\)" text))

(defun contexture-repl--check-idle ()
  "Signal an error if a question of this buffer is still being answered."
  (when (contexture-repl--busy-p)
    (contexture--user-error "The last question is still being answered; %s stops the answer"
                (substitute-command-keys "\\[contexture-repl-cancel]"))))

(defun contexture-repl--send-text (text)
  "Send TEXT, the text at the prompt, and empty the prompt.
If a question is being changed, TEXT replaces that and all that followed."
  (contexture-repl--set-text "")
  (setq buffer-undo-list nil)
  (if (bound-and-true-p contexture-repl--editing)
      (let ((question contexture-repl--editing))
        (setq contexture-repl--editing nil)
        (if (memq question contexture-repl--messages)
            (contexture-repl--ask-instead question text)
          (contexture-repl--ask text)))
    (contexture-repl--ask text)))

;;;; What goes with one question

;; What a question mentions after `@' goes with that question, and with no
;; later one.  The server holds it in a context of its own, which only that
;; call names.  The draft at the prompt has such a context too, so that it is
;; shown and counted before it is sent.

(cl-defstruct (contexture-repl--mentioned (:constructor contexture-repl--make-mentioned)
                                          (:copier nil))
  "What a text mentions: CALLS add it to the context MANAGER on the server.
OUTCOMES are theirs, or `asked' until the server has answered; then THEN, if
given, is called with them."
  manager calls outcomes then)

(defvar-local contexture-repl--mentioned nil
  "What the text at the prompt mentions, or nil if the server holds nothing of it.")

(defvar-local contexture-repl--mentions-sent 0
  "Number of questions with mentions that were sent from this buffer.")

(defun contexture-repl--managers ()
  "Return the context of this conversation and of the text at the prompt."
  (if (null contexture-repl--mentioned) contexture-manager
    (append (ensure-list contexture-manager)
            (list (contexture-repl--mentioned-manager contexture-repl--mentioned)))))

(defun contexture-repl--with-question-p (item)
  "Return non-nil if ITEM goes with the text at the prompt only."
  (and contexture-repl--mentioned
       (equal (plist-get item :manager)
              (contexture-repl--mentioned-manager contexture-repl--mentioned))))

(defun contexture-repl--read-mentions (text)
  "Return what the mentions in TEXT mean, as `contexture-mention--meanings' does.
What is between code fences mentions nothing."
  (contexture-mention--meanings
   (contexture-repl--without-code
    (replace-regexp-in-string contexture-repl--own-template "" text))
   (cl-remove-if #'contexture-repl--with-question-p contexture-repl--items)))

(defun contexture-repl--without-code (text)
  "Return TEXT, with its properties, but without what is between code fences."
  (with-temp-buffer
    (insert text)
    (goto-char (point-min))
    (while (re-search-forward "^[ \t]*\\(```+\\|~~~+\\)" nil t)
      (let ((start (match-beginning 0)) (fence (match-string 1)))
        (end-of-line)
        (unless (re-search-forward (concat "^[ \t]*" fence) nil t)
          (goto-char (point-max)))
        (delete-region start (line-end-position))))
    (buffer-string)))

(defun contexture-repl--hold-mentions (calls)
  "Have the server hold for this prompt what CALLS add, and nothing else."
  (unless (equal calls (and contexture-repl--mentioned
                            (contexture-repl--mentioned-calls contexture-repl--mentioned)))
    (let* ((manager (format "*session %s question %d*" (contexture-repl--session-id)
                            (mod contexture-repl--mentions-sent 2)))
           (mentioned (contexture-repl--make-mentioned
                       :manager manager :calls calls :outcomes 'asked)))
      (setq contexture-repl--mentioned (and calls mentioned))
      (puthash manager "the question" contexture--labels)
      (let ((buffer (current-buffer)))
        (contexture-request-batch-async
         `((drop-manager :manager ,manager)
           ,@(cl-loop for (method . params) in calls
                      collect `(,method :manager ,manager ,@params :brief t)))
         :success
         (lambda (outcomes)
           (setf (contexture-repl--mentioned-outcomes mentioned) (cdr outcomes))
           (when-let* ((then (contexture-repl--mentioned-then mentioned)))
             (funcall then (cdr outcomes)))
           (cl-loop for (_ . params) in calls
                    for outcome in (cdr outcomes)
                    for item = (plist-get outcome :result)
                    when item
                    do (contexture-live--added manager item (plist-get params :content)))
           (contexture--with-live-buffer buffer (contexture-repl--fetch-items))))))))

(defun contexture-repl--draft-mentions ()
  "Have the server hold what the text at the prompt mentions, if it is a question.
Return the contexts to send, or nil if nothing is mentioned."
  (let ((text (buffer-substring contexture-repl--input (point-max)))
        (contexture-mention--longest-wait 0)) ; Emacs waits only when it is sent
    (contexture-repl--hold-mentions
     (unless (contexture-repl--command-p text)
       (car (with-demoted-errors "Contexture: %S" (contexture-repl--read-mentions text)))))
    (and contexture-repl--mentioned (contexture-repl--managers))))

(defun contexture-repl--take-mentions (text)
  "Have the server hold what TEXT, about to be sent, mentions, and tell the user.
Return it as a `contexture-repl--mentioned', or nil if that is nothing."
  (pcase-let ((`(,calls ,unknown ,remarks)
               (with-demoted-errors "Contexture: %S" (contexture-repl--read-mentions text))))
    (contexture-repl--hold-mentions calls)
    (let ((mentioned contexture-repl--mentioned)
          (remarks (contexture-mention--remarks unknown remarks)))
      (cond ((and mentioned (eq (contexture-repl--mentioned-outcomes mentioned) 'asked))
             (setf (contexture-repl--mentioned-then mentioned)
                   (lambda (outcomes) (contexture-repl--tell-mentioned outcomes remarks))))
            (mentioned (contexture-repl--tell-mentioned
                        (contexture-repl--mentioned-outcomes mentioned) remarks))
            (remarks (contexture--message "Contexture: %s" (string-join remarks "; "))))
      mentioned)))

(defun contexture-repl--tell-mentioned (outcomes remarks)
  "Say what OUTCOMES, of calls for a question's mentions, send; then say REMARKS."
  (let ((items (delq nil (contexture--pluck :result outcomes)))
        (errors (delq nil (contexture--pluck :error outcomes))))
    (contexture--message
     "%s" (string-join
           `(,@(and items
                    (list (concat "With this question only: "
                                  (mapconcat #'contexture-repl--mentioned-text items ", "))))
             ,@(mapcar #'contexture--error-text errors) ,@remarks)
           "; "))))

(defun contexture-repl--mentioned-text (item)
  "Return a phrase for ITEM, which a question mentions, with its tokens."
  (format "%s (%s)" (contexture--description (plist-get item :metadata))
          (contexture--count (or (plist-get item :tokens) 0) "token")))

(defun contexture-repl--drop-mentions (mentioned)
  "Have the server forget MENTIONED, whose question was answered or given up."
  (when (and mentioned (contexture-running-p))
    (contexture-repl--request
     'drop-manager (list :manager (contexture-repl--mentioned-manager mentioned))
     #'ignore #'ignore)))

;;;; Asking

(defvar contexture-repl--recent nil
  "Buffers of conversations, the last used first.
Opening a conversation and asking in it count as use.")

(defun contexture-repl--used ()
  "Return the ids of the conversations that were used, the last used first."
  (or contexture-repl--used
      (setq contexture-repl--used (plist-get (contexture-repl--file-contents) :used))))

(defun contexture-repl--note-used (buffer)
  "Record that BUFFER, of a conversation, was used last; return BUFFER."
  (setq contexture-repl--recent
        (cons buffer (cl-remove-if-not #'buffer-live-p
                                       (remq buffer contexture-repl--recent))))
  (let ((id (plist-get (buffer-local-value 'contexture-repl--session buffer) :id)))
    (unless (equal id (car (contexture-repl--used)))
      (setq contexture-repl--used
            (seq-take (cons id (remove id contexture-repl--used)) 200))
      (contexture-repl--save)))
  buffer)

(defun contexture-repl--ask (text &optional origin)
  "Ask TEXT, which has code from ORIGIN, in the conversation of this buffer.
ORIGIN is nil if TEXT was written at the prompt.  The model is sent the
conversation, so this waits until the buffer shows it."
  (if contexture-repl--loaded (contexture-repl--ask-now text origin)
    (let ((mine (setq contexture-repl--preparing (cons 'log text))))
      (push (lambda ()
              (when (eq mine contexture-repl--preparing)
                (setq contexture-repl--preparing nil)
                (contexture-repl--ask-now text origin)))
            contexture-repl--once-loaded))))

(defun contexture-repl--ask-now (text origin)
  "Ask TEXT, with code from ORIGIN, as `contexture-repl--ask' does.
The conversation is drawn."
  (contexture-repl--note-used (current-buffer))
  (let* ((mentioned (contexture-repl--take-mentions text))
         (text (substring-no-properties text))
         (turn (contexture-repl--make-turn
               :buffer (current-buffer) :text text :mentioned mentioned
               :managers (and mentioned (contexture-repl--managers))
               :key (contexture--make-request-key)
               :question (contexture-repl--add-message :user text nil :origin origin))))
    (when mentioned
      (setq contexture-repl--items (cl-remove-if #'contexture-repl--with-question-p
                                                 contexture-repl--items)
            contexture-repl--mentioned nil) ; the next draft has its own
      (cl-incf contexture-repl--mentions-sent)
      (contexture-repl--draw-context))
    (contexture-repl--remember text)
    (contexture-repl--show-end)
    (setq contexture-repl--turn turn)
    (when (and (string-match-p "\\`conversation-[0-9]+\\'"
                               (plist-get contexture-repl--session :session))
               (null (cdr contexture-repl--messages)))
      (contexture-repl--rename
       (string-trim (contexture-repl--first-words
                     (or (and origin (contexture-repl--origin-name origin)) text)))
       1))
    (push turn contexture-repl--turns)
    (add-hook 'contexture-notification-functions #'contexture-repl--progress)
    (add-hook 'contexture-connected-hook #'contexture-repl--asked-again)
    (contexture-repl--draw-header)
    (contexture-repl--keep-draft)
    (contexture-repl--take-checkpoint turn)))

(defun contexture-repl--rename (name number)
  "Rename this conversation to NAME, or to \"NAME (NUMBER)\" if NUMBER is not 1.
If another conversation has that name, try the next number."
  (contexture-repl--request
   'rename-session
   (list :session (contexture-repl--session-id)
         :name (if (= number 1) name (format "%s (%d)" name number)))
   (lambda (session) (contexture-repl--renamed (plist-get session :session)))
   (lambda (problem)
     (when (eq (plist-get (plist-get problem :data) :kind) :session-exists)
       (contexture-repl--rename name (1+ number))))))

(defun contexture-repl--renamed (name)
  "Record that this buffer's conversation is called NAME now.
Rename the buffer, and move what is saved to the new name."
  (let ((old (plist-get contexture-repl--session :session)))
    (when (and name (not (equal name old)))
      (setq contexture-repl--session
            (plist-put (copy-sequence contexture-repl--session) :session name)
            contexture-repl--kept nil)
      (contexture-repl--save old nil nil)
      (contexture-repl--keep-draft)
      (when (string-prefix-p (contexture-repl--buffer-name old) (buffer-name))
        (rename-buffer (contexture-repl--buffer-name name) t))
      (contexture-repl--draw-header))))

(defun contexture-repl--buffer-name (name)
  "Return the name of the buffer for the conversation called NAME.
It is short, so that the mode line has room for the token count."
  (contexture--format "*contexture: %s*"
                      (truncate-string-to-width (or name "") 20 nil nil "…")))

(defun contexture-repl--take-checkpoint (turn)
  "Take a checkpoint before the question of TURN, if wanted; then ask the model.
Ask even if no checkpoint can be taken."
  (if (not contexture-repl-checkpoints)
      (contexture-repl--chat turn)
    (contexture-repl--request
     'checkpoint
     (list :session (contexture-repl--session-id)
           :message (concat "Before: " (contexture-repl--first-words
                                        (contexture-repl--turn-text turn)))
           :request-key (concat (contexture-repl--turn-key turn) "-before"))
     (lambda (result)
       (setf (contexture-repl--message-checkpoint
              (contexture-repl--turn-question turn))
             (plist-get result :checkpoint))
       (contexture-repl--chat turn))
     (lambda (_) (contexture-repl--chat turn)))))

(defun contexture-repl--first-words (text)
  "Return the beginning of TEXT on one line, at most 50 columns."
  (truncate-string-to-width (replace-regexp-in-string "[ \t\n]+" " " text)
                            50 nil nil "..."))

(defun contexture-repl--session-id ()
  "Return the id of this buffer's conversation, or its name if that is all known."
  (or (plist-get contexture-repl--session :id)
      (plist-get contexture-repl--session :session)))

(defun contexture-repl--chat (turn)
  "Ask the model the question of TURN, a turn of this buffer.
If the user cancelled it meanwhile, end it instead; do nothing if it has ended."
  (cond ((not (memq turn contexture-repl--turns)))
        ((contexture-repl--turn-asked turn)
         (contexture-repl--failed turn '(:code -32800 :message "cancelled")))
        ((bound-and-true-p contexture-provider--pending)
         (let ((buffer (current-buffer)))
           (contexture-provider--when-ready
            (lambda ()
              (when (buffer-live-p buffer)
                (with-current-buffer buffer (contexture-repl--chat turn)))))))
        (t
         (setf (contexture-repl--turn-id turn)
               (contexture-repl--request
                'chat
                (contexture-repl--chat-params
                 (contexture-repl--turn-text turn)
                 (contexture-repl--turn-managers turn)
                 :request-key (contexture-repl--turn-key turn))
                (apply-partially #'contexture-repl--answered turn)
                (apply-partially #'contexture-repl--refused turn))
               (contexture-repl--turn-connection turn) contexture--connection))))

(defvar contexture-repl--unknown nil
  "Parameters of `chat', keywords, that the server does not know.")

(defun contexture-repl--chat-params (text managers &rest more)
  "Return the parameters of `chat' for asking TEXT in this buffer.
MANAGERS are the contexts to send, or nil for those of the conversation.
MORE are further keywords and values.  Leave out what the server does not know."
  (let* ((settings contexture-repl--settings)
         (managing
          ;; The choices in the header line, if there are any.  A template
          ;; that TEXT names is left to the server.
          (cond ((or (not (plist-member settings :manage))
                     (string-match-p contexture-repl--own-template text))
                 nil)
                ((plist-get settings :manage)
                 `(:manage t ,@(contexture--plist
                                :template (plist-get settings :template))))
                (t '(:manage nil))))
         (params (append
                  (contexture--plist :session (contexture-repl--session-id)
                                     :content text :managers managers
                                     :phase (plist-get settings :phase))
                  (contexture-repl--model-params) managing more)))
    (cl-loop for (key value) on params by #'cddr
             unless (memq key contexture-repl--unknown)
             nconc (list key value))))

(defun contexture-repl--count-params ()
  "Return the parameters for counting what this buffer would send now.
A slash command at the prompt does not count, since it is not sent."
  (let ((text (string-trim (contexture-repl--text))))
    (append (contexture--plist :session (contexture-repl--session-id)
                               :content (unless (or (string-empty-p text)
                                                    (string-prefix-p "/" text))
                                          text)
                               :managers (contexture-repl--draft-mentions)
                               :phase (plist-get contexture-repl--settings :phase))
            (contexture-repl--model-params))))


(defun contexture-repl--refused (turn problem)
  "End TURN because of PROBLEM, an error of `chat'.
If the server does not know a parameter, ask again without it instead."
  (let ((param (plist-get (plist-get problem :data) :param)))
    (if (not (and (eql (plist-get problem :code) -32602)
                  (memq turn contexture-repl--turns)
                  (memq param '(:request-key :model :provider :template :manage :phase))
                  (not (memq param contexture-repl--unknown))))
        (contexture-repl--failed turn problem)
      (push param contexture-repl--unknown)
      (unless (or (memq param '(:request-key :template))
                  (and (eq param :manage)
                       (not (plist-get contexture-repl--settings :manage))))
        (contexture-repl--note
         (format "This server does not know the parameter %s, so the question is sent without it."
                 (if (eq param :manage) "template" (contexture--name param)))))
      (contexture-repl--chat turn))))

(defvar contexture-repl--running nil
  "The slash command that is running, as (BUFFER . TEXT), or nil.
It is also bound while the results of the command's calls are handled, so
that TEXT can go back to the prompt of BUFFER if a call fails.")

(defun contexture-repl--request (method params success &optional failure)
  "Call METHOD with PARAMS for this buffer; return the call's id.
SUCCESS is called with the result or FAILURE with the error, both in this
buffer, if it is still live.  FAILURE shows the error by default.  If the
call cannot even be made, call FAILURE at once and return nil."
  (let* ((buffer (current-buffer))
         (running contexture-repl--running)
         (failure (or failure #'contexture-repl--show-problem))
         (inside (lambda (function argument)
                   (when (buffer-live-p buffer)
                     (with-current-buffer buffer
                       (let ((contexture-repl--running running))
                         (funcall function argument)))))))
    (condition-case problem
        (contexture-request-async method params
                                  :success (apply-partially inside success)
                                  :error (apply-partially inside failure))
      ((user-error contexture-error)
       (funcall failure (list :message (contexture--problem-text problem)))
       nil))))

(defun contexture-repl--note-error (text &optional advice)
  "Draw TEXT, what an error says, in one line, and ADVICE below it.
If TEXT is longer, the line ends in dots, and unfolds to the whole text."
  (let* ((whole (concat "Error: " text))
         (line (contexture-repl--one-line whole (- (contexture-repl--width) 8))))
    (if (equal line whole) (contexture-repl--note whole 'contexture-repl-error)
      (contexture-repl--draw-fold line text 'face 'contexture-repl-error))
    (when advice (contexture-repl--note advice 'contexture-repl-error))))

(defun contexture-repl--show-problem (problem)
  "Show PROBLEM, the error of a call, at the end of the conversation.
If a slash command made the call, put that back at the prompt."
  (contexture-repl--note-error (contexture--error-text problem))
  (when (eq (car contexture-repl--running) (current-buffer))
    (contexture-repl--give-back (cdr contexture-repl--running))))

;;;; The end

(defun contexture-repl--answered (turn result)
  "End TURN, whose `chat' returned RESULT, once the whole answer is drawn."
  (let ((content (or (plist-get result :content) ""))
        (squeeze (lambda (text) (replace-regexp-in-string "[ \t\n]+" "" text))))
    (unless (contexture-repl--when-drawn turn #'contexture-repl--answered result)
      (contexture-repl--begin-answer turn)
      (if (or (equal content (contexture-repl--last-part turn))
              (and (contexture-repl--turn-earlier turn)
                   (equal (funcall squeeze content)
                          (funcall squeeze (contexture-repl--so-far turn)))))
          (contexture-repl--finish turn result content)
        (when-let* ((state (contexture-repl--turn-state turn)))
          (contexture-repl--changing
            (delete-region (contexture-repl--turn-start turn)
                           contexture-repl--tail)))
        (setf (contexture-repl--turn-state turn) nil
              (contexture-repl--turn-pieces turn) nil
              (contexture-repl--turn-pending turn) (list (cons :text content)))
        (contexture-repl--answered turn result)))))

(defun contexture-repl--finish (turn result content)
  "End TURN, whose `chat' returned RESULT; CONTENT, the answer, is drawn."
  (contexture-repl--end-turn turn)
  (setf (contexture-repl--message-id (contexture-repl--turn-question turn))
        (plist-get result :question))
  (contexture-repl--note-length (plist-get result :id))
  (let ((answer (contexture-repl--turn-answer turn)))
    (setf (contexture-repl--message-id answer) (plist-get result :id)
          (contexture-repl--message-text answer) content
          (contexture-repl--message-origin answer)
          (contexture-repl--message-origin (contexture-repl--turn-question turn)))
    (when-let* ((model (plist-get result :model)))
      (setq contexture-repl--answered-by model)
      (contexture-repl--retitle answer model))
    (contexture-repl--add-results answer (plist-get result :tool-calls)))
  (contexture-repl--note (contexture-repl--result-text result))
  (contexture-repl--keep-usage (plist-get result :id) (plist-get result :model)
                               (contexture-repl--result-text result))
  (when-let* ((text (contexture-repl--management-text result)))
    (contexture-repl--note text))
  (contexture-repl--fetch-stats t)
  (contexture-repl--keep-draft)
  (contexture-repl--tell-watch turn 'done content)
  (run-hooks 'contexture-repl-answered-hook))

(defun contexture-repl--management-text (result)
  "Return a phrase for the notes taken before the answer, from RESULT, or nil.
RESULT is that of `chat'."
  (let* ((management (plist-get result :management))
         (template (plist-get management :template)))
    (pcase (contexture--name (plist-get management :status))
      ("managed" (concat (format "Notes with %s" template)
                         (if (equal "project" (contexture--name
                                               (plist-get management :source)))
                             " of the project" "")
                         (let ((before (plist-get management :tokens-before))
                               (after (plist-get management :tokens-after)))
                           (if (and before after)
                               (format ": %d → %s" before
                                       (contexture--count after "token"))
                             ""))
                         (if (plist-get management :cached)
                             "; these notes had already been taken" "")))
      ("below-threshold"
       (concat (format "No notes with %s yet: the history%s is below the template's threshold"
                       template
                       (let ((tokens (plist-get management :tokens-before)))
                         (if tokens (format ", %s," (contexture--count tokens "token"))
                           "")))))
      ("disabled" (format "No notes: %s"
                          (or (plist-get management :reason)
                              (format "the template %s never takes notes" template))))
      ("failed" (contexture-repl--failed-managing-text management)))))

(defun contexture-repl--failed-managing-text (management)
  "Return a phrase for notes that could not be taken, from MANAGEMENT.
That is a plist in the result of `chat'."
  (concat "No notes were taken, so the whole history was sent: "
          (let ((step (plist-get management :step)))
            (if step (format "%s: " (contexture--name step)) ""))
          (or (plist-get management :reason) "no reason was given")
          (let ((template (plist-get management :template)))
            (if template (format " (template %s)" template) ""))))

(defun contexture-repl--request-stats (success &optional failure)
  "Ask the server how full the model's window is.
SUCCESS is called with the result of `session-stats'; for FAILURE, see
`contexture-repl--request'."
  (contexture-repl--request
   'session-stats (contexture--plist
                   :session (contexture-repl--session-id)
                   :model (plist-get (contexture-repl--model-params) :model))
   success failure))

(defun contexture-repl--fetch-stats (&optional after-turn)
  "Ask how full the model's window is, and redraw the header line.
AFTER-TURN is non-nil after a turn of this buffer: until the server has
answered, notifications about new messages may be about that turn."
  (when after-turn (cl-incf contexture-repl--asking))
  (contexture-repl--count)
  (contexture-repl--request-stats
   (lambda (stats)
     (when after-turn (cl-decf contexture-repl--asking))
     (setq contexture-repl--stats stats
           contexture-repl--log-length (max contexture-repl--log-length
                                            (or (plist-get stats :log) 0)))
     (contexture-repl--draw-header))
   (lambda (_) (when after-turn (cl-decf contexture-repl--asking)))))

(defun contexture-repl--count ()
  "Count the tokens that this buffer would send, now and after each change."
  (when-let* ((id (plist-get contexture-repl--session :id)))
    (contexture-count--follow id (current-buffer) #'contexture-repl--draw-header)
    (contexture-count--changed id)))

(defun contexture-repl--so-far (turn)
  "Return the text of TURN's answer that is drawn so far, in all its parts."
  (string-join (delete "" (reverse (cons (contexture-repl--last-part turn)
                                         (contexture-repl--turn-earlier turn))))
               "\n\n"))

(defun contexture-repl--end-turn (turn)
  "Record that TURN has ended, and show its remarks."
  (setq contexture-repl--turns (delq turn contexture-repl--turns))
  (unless contexture-repl--turns
    (remove-hook 'contexture-notification-functions #'contexture-repl--progress)
    (remove-hook 'contexture-connected-hook #'contexture-repl--asked-again))
  (when-let* ((timer (contexture-repl--turn-timer turn)))
    (cancel-timer timer)
    (setf (contexture-repl--turn-timer turn) nil))
  (setq contexture-repl--turn nil)
  (contexture-repl--drop-mentions (contexture-repl--turn-mentioned turn))
  (contexture-repl--drop-approvals)
  (contexture-repl--end-part turn)
  (mapc #'contexture-repl--note (reverse (contexture-repl--turn-notes turn)))
  (contexture-repl--draw-header)
  (run-hooks 'contexture-repl-turn-ended-hook))

(defun contexture-repl--cost-text (cost)
  "Return COST as text with four decimals, or with two digits if below 0.001."
  (if (or (zerop cost) (>= cost 0.001)) (format "%.4f" cost)
    (replace-regexp-in-string
     "\\.?0+\\'" "" (format (format "%%.%df" (min 12 (1+ (- (floor (log cost 10)))))) cost))))

(defun contexture-repl--result-text (result)
  "Return a phrase for model, tokens and cost of an answer, as far as known.
RESULT is that of `chat'."
  (let* ((usage (plist-get result :usage))
         (cached (plist-get usage :cached))
         (cost (plist-get result :cost)))
    (concat
     (or (plist-get result :model) "model")
     (if (and (plist-get usage :input) (plist-get usage :output))
         (format ": %d tokens in%s, %d out" (plist-get usage :input)
                 (if (and cached (> cached 0)) (format " (%d cached)" cached) "")
                 (plist-get usage :output))
       "")
     (if cost (concat ", cost " (contexture-repl--cost-text cost)) "")
     (if-let* ((ending (plist-get result :ending))) (concat "; " ending) ""))))

(defconst contexture-repl--cancelling "Cancelling..."
  "Message shown until the server has stopped an answer.")

(defun contexture-repl--failed (turn problem)
  "End TURN, whose answer failed or was cancelled because of PROBLEM.
A question without any answer goes back to the prompt."
  (when (and (memq turn contexture-repl--turns)
             (not (contexture-repl--when-drawn turn #'contexture-repl--failed problem)))
    (let ((cancelled (eql (plist-get problem :code) -32800))
          (answer (contexture-repl--turn-answer turn))
          (question (contexture-repl--turn-question turn)))
      (contexture-repl--end-turn turn)
      (when (and cancelled (equal (current-message) contexture-repl--cancelling))
        (message nil))
      (if answer
          (setf (contexture-repl--message-text answer) (contexture-repl--so-far turn))
        (contexture-repl--delete-from question)
        (contexture-repl--withdraw question))
      (cond ((and cancelled answer)
             (contexture-repl--note (substitute-command-keys
                                     "Cancelled; \\[contexture-repl-retry] asks again.")))
            (cancelled
             (contexture-repl--note "Cancelled; your question is back at the prompt."))
            (t (contexture-repl--note-problem problem)))
      (unless (or (and cancelled answer) (contexture-repl--watcher turn))
        (contexture-repl--give-back (contexture-repl--turn-text turn)))
      (contexture-repl--fetch-stats t)
      (contexture-repl--keep-draft)
      (contexture-repl--tell-watch turn 'failed))))

(defconst contexture-repl--no-model
  "No model is set up yet: use M-x contexture-configure-provider, or add a [[providers]] \
table to the server's configuration file. Everything else works without one."
  "Remark shown while no model is set up.")

(defun contexture-repl--note-problem (problem)
  "Show PROBLEM, for which a question was not answered, and what to do.
If no model is set up, show only the remark about that, and only once."
  (let* ((data (plist-get problem :data))
         (kind (plist-get data :kind)))
    (if (or (not (eq kind :unconfigured)) (plist-get data :provider))
        (contexture-repl--note-error
         (contexture--error-text problem)
         (contexture-repl--advice kind (plist-get problem :code)))
      (contexture-repl--forget-no-model)
      (contexture-repl--note
       (concat contexture-repl--no-model " Then, " (contexture-repl--advice nil nil))
       'contexture-repl-error 'contexture-no-model t))))

(defun contexture-repl--advice (kind code)
  "Return what to do about an error of KIND with CODE; both may be nil."
  (let ((again "RET asks the question at the prompt again."))
    (pcase (and kind (contexture--name kind))
      ((or "authentication" "unconfigured")
       (concat "The provider needs a valid key; after you change it, \
M-x contexture-configure-provider looks it up again. Then, " again))
      ("session-busy"
       (concat "The server is answering another client in this conversation; when that is over, "
               again))
      ("rate-limited" (concat "Wait a little; " again))
      ("quota-exhausted"
       (concat "Check the plan of your account, or choose another model with /model; "
               again))
      ("context-too-long"
       (concat "/drop items, choose a /template, or choose a /model with a larger window; "
               again))
      ("bad-request" (concat "/model chooses another model; " again))
      ((guard (eql code -32601))
       (concat "This server cannot talk to models; install a newer one. "
               (contexture--capitalized again)))
      (_ (contexture--capitalized again)))))

(defun contexture-repl--unanswered-text ()
  "Return the text to save: the question of which nothing came, and the draft."
  (let ((question (cond ((null contexture-repl--turn) (cdr contexture-repl--preparing))
                        ((not (or (contexture-repl--turn-answer contexture-repl--turn)
                                  (contexture-repl--turn-pending contexture-repl--turn)))
                         (contexture-repl--turn-text contexture-repl--turn)))))
    (string-join (cl-remove-if #'string-blank-p
                               (list (or question "") (contexture-repl--text)))
                 "\n\n")))

;;;; Cancelling

(defun contexture-repl-cancel ()
  "Stop the answer that is coming in, and keep what has come.
Use it again to give up on a server that does not answer.  While you are
changing an earlier question, leave that question as it was instead."
  (interactive)
  (let ((turn contexture-repl--turn))
    (cond ((bound-and-true-p contexture-repl--editing)
           (setq contexture-repl--editing nil)
           (contexture-repl--set-text "")
           (message "The question stays as it was"))
          (contexture-repl--preparing
           (contexture-repl--give-back (cdr contexture-repl--preparing))
           (setq contexture-repl--preparing nil))
          ((null turn) (user-error "Nothing is being answered"))
          ((null (contexture-repl--turn-id turn)) ; before the call is made
           (if (contexture-repl--turn-asked turn)
               (contexture-repl--failed turn '(:code -32800 :message "cancelled"))
             (setf (contexture-repl--turn-asked turn) t)))
          ((and (not (contexture-repl--turn-asked turn))
                (jsonrpc-running-p (contexture-repl--turn-connection turn)))
           (setf (contexture-repl--turn-asked turn) t)
           (contexture-repl--send-cancel turn)
           (message contexture-repl--cancelling))
          (t (contexture--cancel (contexture-repl--turn-connection turn)
                                 (contexture-repl--turn-id turn))))))

(defun contexture-repl--send-cancel (turn)
  "Ask the server to stop answering TURN."
  (jsonrpc-notify (contexture-repl--turn-connection turn) 'cancel
                  (list :id (contexture-repl--turn-id turn))))

;;; Ask again, change a question, branch

;; Asking the last question again, changing an earlier one, and branching
;; from an earlier turn into a new conversation.  All three go back to the
;; checkpoint that was taken before a question.  Later messages are taken
;; back; they stay only in the log.
;;
;; A checkpoint also has the items of the context.  You may ask again
;; because you have just added what was missing, so these commands keep the
;; items as they are now.

(defvar-local contexture-repl--editing nil
  "Message of the question that the user is changing at the prompt, or nil.")

(defvar-local contexture-repl--unanswered nil
  "Text of the last question that went back to the prompt, or nil.")

;;;; Commands

(defun contexture-repl-retry ()
  "Ask the last question again, in place of that question and its answer."
  (interactive)
  (contexture-repl--check-idle)
  (let ((question (contexture-repl--last :user))
        (text (contexture-repl--text)))
    (cond ((and (not (string-blank-p text)) contexture-repl--unanswered
                (equal (string-trim text) contexture-repl--unanswered))
           (contexture-repl--send-text (string-trim text)))
          ((null question) (user-error "You have asked nothing yet"))
          (t (contexture-repl--ask-instead
              question (contexture-repl--message-text question))))))

(defun contexture-repl-edit ()
  "Change the question at or before point, by default the last one.
It is copied to the prompt.  \\<contexture-repl-mode-map>\\[contexture-repl-send] \
there sends it in place of the old
question and all that followed; \\[contexture-repl-cancel] leaves everything \
as it was."
  (interactive)
  (contexture-repl--check-idle)
  (let ((question (let* ((message (or (contexture-repl--message-at (point))
                                      (user-error "You have asked nothing yet")))
                         (older (memq message contexture-repl--messages)))
                    (or (cl-find :user older :key #'contexture-repl--message-role)
                        (user-error "There is no question at or before point")))))
    (unless (string-blank-p (contexture-repl--text))
      (contexture-repl--remember (contexture-repl--text)))
    (setq contexture-repl--editing question)
    (contexture-repl--set-text (contexture-repl--message-text question))
    (message (substitute-command-keys
              "\\[contexture-repl-send] replaces the question and what followed; \
\\[contexture-repl-cancel] leaves them"))))

(defun contexture-repl-branch (&optional name)
  "Start a conversation that continues from the message at point, or the last.
If the message is a question, the new conversation ends before it, and has
the question at the prompt for you to change.  With a prefix argument, ask
for the NAME of the new conversation.  Its context has the items that the
context had at that time."
  (interactive
   (list (and current-prefix-arg (read-string "Name of the new conversation: " nil
                                              'contexture-session-history))))
  (contexture-repl--check-idle)
  (let* ((message (or (contexture-repl--message-at (point))
                      (user-error "There is no message yet")))
         (questionp (and (eq (contexture-repl--message-role message) :user)
                         (< (point) contexture-repl--tail)))
         (name (and name (not (string-blank-p name)) (string-trim name)))
         (next
          (if questionp message
            (cl-find
             :user (cdr (memq message (reverse contexture-repl--messages)))
             :key #'contexture-repl--message-role))))
    (if (null next)
        (contexture-repl--fork name nil nil)
      (contexture-repl--find-checkpoint
       next (lambda (checkpoint)
              (let ((draft (and questionp (contexture-repl--message-text message))))
                (if checkpoint
                    (contexture-repl--fork name checkpoint draft)
                  (contexture-repl--copy name next draft))))))))

;;;; Checkpoints

(defun contexture-repl--find-checkpoint (question then)
  "Call THEN with the id of the checkpoint taken just before QUESTION, or nil."
  (let ((number (contexture-repl--number (contexture-repl--message-id question))))
    (cond ((contexture-repl--message-checkpoint question)
           (funcall then (contexture-repl--message-checkpoint question)))
          ((null number) (funcall then nil))
          (t (contexture-repl--request
              'list-checkpoints (list :session (contexture-repl--session-id))
              (lambda (checkpoints)
                (funcall then
                         (plist-get
                          (cl-find (1- number) checkpoints :from-end t
                                   :key (lambda (it) (plist-get it :position)))
                          :id)))
              (lambda (_) (funcall then nil)))))))

(defun contexture-repl--go-back (checkpoint then failed)
  "Go back to CHECKPOINT, but keep the items of the context as they are.
Then call THEN without arguments, or FAILED with the error."
  (let ((look (list :manager (plist-get contexture-repl--session :manager)
                    :brief t))
        (ids (lambda (items) (mapcar (lambda (it) (plist-get it :id)) items))))
    (contexture-repl--request
     'list-items look
     (lambda (before)
       (contexture-repl--roll-back
        checkpoint
        (lambda (_)
          (contexture-repl--request
           'list-items look
           (lambda (after)
             (if (equal (funcall ids before) (funcall ids after))
                 (funcall then)
               (contexture-repl--request 'undo (list :manager (plist-get look :manager))
                                         (lambda (_) (funcall then)) failed)))
           failed))
        failed))
     failed)))

(defun contexture-repl--roll-back (checkpoint then failed)
  "Roll this conversation back to CHECKPOINT, including its context's items.
Call THEN with the result, or FAILED with the error."
  (cl-incf contexture-repl--own-rollbacks)
  (contexture-repl--request
   'rollback (list :session (contexture-repl--session-id) :checkpoint checkpoint
                   :request-key (contexture--make-request-key))
   then
   (lambda (problem)
     (setq contexture-repl--own-rollbacks (max 0 (1- contexture-repl--own-rollbacks)))
     (funcall failed problem))))

(defun contexture-repl--ask-instead (question text)
  "Ask TEXT in place of QUESTION and all that followed.
If there is no checkpoint before QUESTION, ask TEXT at the end."
  (when (equal (string-trim (contexture-repl--text)) text)
    (contexture-repl--set-text ""))
  (let* ((mine (setq contexture-repl--preparing (cons 'back text)))
         (ask (lambda ()
                (when (eq mine contexture-repl--preparing)
                  (setq contexture-repl--preparing nil)
                  (contexture-repl--ask
                   text (contexture-repl--message-origin question)))))
         (failed (lambda (problem)
                   (when (eq mine contexture-repl--preparing)
                     (setq contexture-repl--preparing nil)
                     (contexture-repl--show-problem problem)
                     (contexture-repl--give-back text)))))
    (contexture-repl--find-checkpoint
     question
     (lambda (checkpoint)
       (if checkpoint
           (contexture-repl--go-back
            checkpoint
            (lambda ()
              (when (eq mine contexture-repl--preparing)
                (contexture-repl--delete-from question))
              (funcall ask))
            failed)
         (contexture-repl--note "No checkpoint was taken before that question, \
so the question and its answer stay in the conversation.")
         (funcall ask))))))

(defun contexture-repl--withdraw (question)
  "Roll back QUESTION, which got no answer, on the server.
It goes back to the prompt, and would be in the conversation twice."
  (setq contexture-repl--unanswered (contexture-repl--message-text question))
  (when-let* ((checkpoint (contexture-repl--message-checkpoint question))
              ((contexture-running-p)))
    (contexture-repl--request
     'get-messages (list :session (contexture-repl--session-id) :limit 1)
     (lambda (messages)
       (let ((last (car messages)))
         (when (and (eq (plist-get last :role) :user)
                    (equal (plist-get last :content)
                           (contexture-repl--message-text question))
                    (not (contexture-repl--busy-p)))
           (contexture-repl--go-back checkpoint #'ignore #'ignore))))
     #'ignore)))

;;;; New conversations

(defun contexture-repl--fork (name checkpoint draft)
  "Open a conversation called NAME that continues from CHECKPOINT.
Put DRAFT at its prompt.  NAME nil means that the server chooses a name,
CHECKPOINT nil the end of this conversation, and DRAFT nil no text."
  (contexture-repl--request
   'fork-session
   (contexture--plist :session (contexture-repl--session-id)
                      :checkpoint checkpoint :name name
                      :request-key (contexture--make-request-key))
   (apply-partially #'contexture-repl--show-branch contexture-repl--settings draft)))

(defun contexture-repl--show-branch (settings draft session)
  "Show SESSION, a new conversation, with SETTINGS, and DRAFT at the prompt.
SESSION is the server's entry; DRAFT may be nil."
  (let ((buffer (contexture-repl--open session)))
    (with-current-buffer buffer
      (setq contexture-repl--settings (copy-sequence settings))
      (when draft (contexture-repl--set-text draft))
      (contexture-repl--draw-header))
    (pop-to-buffer buffer)
    (contexture--message "This is the new conversation %s, which continues from there"
             (plist-get session :session))))

(defun contexture-repl--copy (name next draft)
  "Open a conversation called NAME with copies of the messages before NEXT.
This is for a NEXT without a checkpoint.  NAME and DRAFT are as for
`contexture-repl--fork'."
  (let ((settings contexture-repl--settings)
        (context contexture-manager)
        (project (plist-get contexture-repl--session :project))
        (before (contexture-repl--number (contexture-repl--message-id next))))
    (contexture-repl--request
     'get-messages (list :session (contexture-repl--session-id))
     (lambda (messages)
       (contexture-repl--request
        'open-session
        (contexture--plist :name name :project project
                           (if (listp context) :managers :manager)
                           (if (listp context) (butlast context) context)
                           :request-key (contexture--make-request-key))
        (lambda (session)
          (contexture-repl--request
           'add-message
           (list :session (plist-get session :id)
                 :request-key (contexture--make-request-key)
                 :messages (contexture-repl--copies messages before))
           (lambda (_)
             (contexture-repl--show-branch settings draft session)))))))))

(defun contexture-repl--copies (messages before)
  "Return MESSAGES before the number BEFORE, or all of them if that is nil.
They are in the form that `add-message' takes."
  (cl-loop for message in messages
           for number = (string-to-number (substring (plist-get message :id) 4))
           while (or (null before) (< number before))
           collect (apply #'contexture--plist
                          (cl-loop for key in '(:role :content :timestamp :phase :pinned
                                                      :tool-calls :tool-call-id)
                                   nconc (list key (plist-get message key))))))

(provide 'contexture-repl-turn)
;;; contexture-repl-turn.el ends here
