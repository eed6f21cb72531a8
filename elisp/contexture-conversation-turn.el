;;; contexture-conversation-turn.el --- One question and its answer  -*- lexical-binding: t; -*-

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

(require 'contexture-conversation-view)
(eval-when-compile (require 'subr-x))

(declare-function contexture-picture--show "contexture-picture" ())
(declare-function jsonrpc-notify "jsonrpc" (connection method params))
(declare-function jsonrpc-running-p "jsonrpc" (conn))
(declare-function contexture-conversation--run-command "contexture-conversation" (text))
(declare-function contexture-provider--when-ready "contexture-doctor" (function))
(declare-function contexture-conversation--forget-no-model "contexture-conversation" ())
(declare-function contexture-conversation--open "contexture-conversation" (session))
(declare-function contexture-conversation--fetch-items "contexture-conversation" (&optional then))
(defvar contexture--own-call)
(defvar contexture-conversation--editing)

;;; What the user is writing

;; The text at the prompt, the history of such texts, and the file that
;; keeps the history, and each conversation's draft and settings, between
;; sessions of Emacs.  Only the user can read that file.  Another Emacs may write it
;; too, so it is read again before it is written.

(defcustom contexture-conversation-history-file
  (locate-user-emacs-file "contexture-conversation-history")
  "File for the input history, and for the drafts and settings of conversations.
Nil means keep nothing."
  :type '(choice file (const :tag "Keep nothing" nil))
  :group 'contexture-conversation)

(defcustom contexture-conversation-history-length 500
  "Maximum number of texts in the input history; the oldest are dropped."
  :type 'natnum
  :group 'contexture-conversation)

(defconst contexture-conversation--idle-seconds 2
  "Number of idle seconds after which the text at a prompt is saved.")

(defvar contexture-conversation--history nil
  "Texts sent in any conversation, the newest first.")

(defvar contexture-conversation--new-history nil
  "Texts sent since the history file was last written, the newest first.")

(defvar contexture-conversation--used nil
  "Ids of conversations, the last used first; nil before the file was read.")

(defvar contexture-conversation--read nil
  "Non-nil once the history was read from its file.")

(defvar-local contexture-conversation--place nil
  "Index of the history entry that is at the prompt, or nil if none is.")

(defvar-local contexture-conversation--unfinished nil
  "Text that was at the prompt before a history entry replaced it, or nil.")

(defvar-local contexture-conversation--idle-timer nil
  "Timer that will save the text at the prompt, or nil.")

(defvar-local contexture-conversation--kept nil
  "The draft and the settings that were saved last, as (DRAFT SETTINGS).")

;;;; The text

(defun contexture-conversation--text ()
  "Return the text at the prompt."
  (buffer-substring-no-properties contexture-conversation--input (point-max)))

(defun contexture-conversation--set-text (text)
  "Replace the text at the prompt with TEXT, and move point after it."
  (let ((inhibit-read-only t))
    (goto-char (point-max))
    (delete-region contexture-conversation--input (point-max))
    (insert text)
    (dolist (window (get-buffer-window-list nil nil t))
      (set-window-point window (point))))
  (contexture-conversation--show-end))

(defun contexture-conversation--give-back (text)
  "Put TEXT, which was not sent or not answered, before the text at the prompt.
If that text begins with TEXT, leave it as it is."
  (let ((since (contexture-conversation--text)))
    (unless (string-prefix-p text since)
      (contexture-conversation--set-text
       (if (string-blank-p since) text (concat text "\n\n" since))))))

(defun contexture-conversation-newline ()
  "Insert a newline at point; above the prompt, at the end of the text there."
  (interactive)
  (when (< (point) contexture-conversation--input) (goto-char (point-max)))
  (insert "\n"))

(defun contexture-conversation--before-command ()
  "Move point to the end if text is about to be typed or yanked above the prompt."
  (when (and (< (point) contexture-conversation--input)
             (memq this-command '(self-insert-command yank yank-pop)))
    (goto-char (point-max))))

;;;; History

(defun contexture-conversation--remember (text)
  "Add TEXT to the history as its newest entry."
  (contexture-conversation--read-file-once)
  (setq contexture-conversation--history (contexture-conversation--with-newest text contexture-conversation--history)
        contexture-conversation--new-history (cons text contexture-conversation--new-history)
        contexture-conversation--place nil
        contexture-conversation--unfinished nil))

(defun contexture-conversation--with-newest (text history)
  "Return HISTORY with TEXT as its newest entry and without other copies of it."
  (let ((longer (cons text (delete text (copy-sequence history)))))
    (seq-take longer contexture-conversation-history-length)))

(defun contexture-conversation-previous-input (count)
  "Replace the text at the prompt with the history entry COUNT entries back.
\\<contexture-conversation-mode-map>\\[contexture-conversation-next-input] goes \
forward again, in the end to the text that you had begun."
  (interactive "p")
  (contexture-conversation--read-file-once)
  (let ((place (+ (or contexture-conversation--place -1) count)))
    (cond ((>= place (length contexture-conversation--history))
           (user-error "There is no older entry in the history"))
          ((< place -1)
           (user-error "There is no newer entry in the history")))
    (unless contexture-conversation--place
      (setq contexture-conversation--unfinished (contexture-conversation--text)))
    (setq contexture-conversation--place (and (>= place 0) place))
    (contexture-conversation--set-text (if (>= place 0) (nth place contexture-conversation--history)
                                         (or contexture-conversation--unfinished "")))))

(defun contexture-conversation-next-input (count)
  "Replace the text at the prompt with the history entry COUNT entries forward."
  (interactive "p")
  (contexture-conversation-previous-input (- count)))

(defun contexture-conversation-search-input (text)
  "Replace the text at the prompt with TEXT, chosen from the history.
If TEXT is empty, nothing was chosen."
  (interactive
   (progn (contexture-conversation--read-file-once)
          (unless contexture-conversation--history
            (user-error "You have sent no text yet; the history is empty"))
          (list (completing-read "Earlier input: " contexture-conversation--history nil t))))
  (unless (string-empty-p text)
    (contexture-conversation--set-text text)))

;;;; The file

(defun contexture-conversation--read-file-once ()
  "Read the history from its file, unless it has been read."
  (unless contexture-conversation--read
    (setq contexture-conversation--read t
          contexture-conversation--history (plist-get (contexture-conversation--file-contents) :history))))

(defun contexture-conversation--file-contents ()
  "Return the contents of the history file, or nil if it cannot be read.
They are a plist of :history, :drafts, :sessions, which has settings, and
:used, the ids of the conversations used last."
  (when (and contexture-conversation-history-file (file-readable-p contexture-conversation-history-file))
    (condition-case nil
        (with-temp-buffer
          (let ((coding-system-for-read 'utf-8-unix) (read-circle nil))
            (insert-file-contents contexture-conversation-history-file))
          (let ((contents (read (current-buffer))))
            (and (proper-list-p contents) (keywordp (car contents)) contents)))
      (error nil))))

(defun contexture-conversation--save (&optional session draft settings)
  "Write the history, and the DRAFT and SETTINGS of SESSION, to the history file.
SESSION is the name of a conversation, or nil for the history alone.  If
the file cannot be written, show a message."
  (when contexture-conversation-history-file
    (condition-case problem
        (contexture-conversation--merge-and-write session draft settings)
      (error (contexture--message "Contexture: cannot save input history and drafts: %s"
                      (error-message-string problem))))))

(defun contexture-conversation--merge-and-write (session draft settings)
  "Merge the history, DRAFT and SETTINGS of SESSION into the history file.
The arguments are as for `contexture-conversation--save'; signal an error on
failure."
  (let* ((contents (contexture-conversation--file-contents))
         (history (plist-get contents :history))
         (drafts (plist-get contents :drafts))
         (sessions (plist-get contents :sessions)))
    (dolist (text (reverse contexture-conversation--new-history))
      (setq history (contexture-conversation--with-newest text history)))
    (when session
      (setq drafts (contexture-conversation--with-entry
                    session (and draft (not (string-blank-p draft)) draft) drafts)
            sessions (contexture-conversation--with-entry session settings sessions)))
    (let* ((file (expand-file-name contexture-conversation-history-file))
           (new (make-temp-file (concat file "."))) ; with mode 0600
           (coding-system-for-write 'utf-8-unix)
           (print-length nil) (print-level nil)
           (write-region-inhibit-fsync t))
      (condition-case problem
          (progn
            (write-region (prin1-to-string (list :history history :drafts drafts
                                                 :sessions sessions
                                                 :used (seq-take
                                                        (seq-uniq
                                                         (append contexture-conversation--used
                                                                 (plist-get contents :used)))
                                                        200)))
                          nil new nil 'quiet)
            (rename-file new file t))
        (error (ignore-errors (delete-file new))
               (signal (car problem) (cdr problem)))))
    (setq contexture-conversation--new-history nil)))

(defun contexture-conversation--with-entry (key value alist)
  "Return ALIST with (KEY . VALUE) first, or without KEY if VALUE is nil.
Keep at most 200 entries."
  (let ((rest (cl-remove key alist :key #'car :test #'equal)))
    (seq-take (if value (cons (cons key value) rest) rest) 200)))

;;;; What is not sent

(defun contexture-conversation--keep-draft ()
  "Save the draft and the settings of this conversation if they have changed."
  (when-let* ((name (plist-get contexture-conversation--session :session)))
    (let ((state (list (if (contexture-conversation--busy-p)
                           (contexture-conversation--unanswered-text)
                         (contexture-conversation--text))
                       contexture-conversation--settings)))
      (unless (and (equal state contexture-conversation--kept)
                   (null contexture-conversation--new-history))
        (setq contexture-conversation--kept (copy-tree state))
        (contexture-conversation--save name (car state) (cadr state))))))

(defconst contexture-conversation--kept-usages 50
  "Maximum number of answers of a conversation whose usage is saved.")

(defun contexture-conversation--keep-usage (id model text)
  "Add MODEL and TEXT, the usage of the answer with ID, to the saved settings.
The server's log has neither of them.  Do nothing if ID is nil."
  (when id
    (setq contexture-conversation--settings
          (plist-put contexture-conversation--settings :usage
                     (seq-take (cons (list (contexture-conversation--usage-key id) model text)
                                     (plist-get contexture-conversation--settings :usage))
                               contexture-conversation--kept-usages)))))

(defun contexture-conversation--usage-key (id)
  "Return the key by which to save the usage of the answer with ID.
It includes the conversation's id: a branch inherits what is saved of another
conversation, and both can have messages with the same ID."
  (format "%s/%s" (plist-get contexture-conversation--session :id) id))

(defun contexture-conversation--bring-back ()
  "Restore the saved draft and settings of this buffer's conversation."
  (let* ((name (plist-get contexture-conversation--session :session))
         (contents (contexture-conversation--file-contents))
         (draft (cdr (assoc name (plist-get contents :drafts)))))
    (setq contexture-conversation--settings
          (copy-sequence (cdr (assoc name (plist-get contents :sessions)))))
    (when (and draft (string-empty-p (contexture-conversation--text)))
      (contexture-conversation--set-text draft))
    (setq contexture-conversation--kept
          (copy-tree (list (contexture-conversation--text) contexture-conversation--settings)))))

(defun contexture-conversation--text-changed (beg end _length)
  "Save the draft soon if END, the end of a change from BEG, is at the prompt.
In that case, also count again what would be sent, and show its hidden
characters: what is yanked, remembered or asked again may have some.  Hide the
middle of very long lines."
  (when (>= end contexture-conversation--input)
    (save-match-data
      (contexture--show-hidden (max contexture-conversation--input (1- beg))
                               (min (point-max) (1+ end)))
      (contexture--hide-middles contexture-conversation--input))
    (contexture-count--changed (plist-get contexture-conversation--session :id) t))
  (when (and (>= end contexture-conversation--input)
             (null contexture-conversation--idle-timer))
    (setq contexture-conversation--idle-timer
          (run-with-idle-timer contexture-conversation--idle-seconds nil
                               #'contexture-conversation--idle (current-buffer)))))

(defun contexture-conversation--idle (buffer)
  "Save the draft of BUFFER, if that is live."
  (contexture--with-live-buffer buffer
    (cancel-timer contexture-conversation--idle-timer)
    (setq contexture-conversation--idle-timer nil)
    (contexture-picture--show)
    (contexture-conversation--keep-draft)))

;;; What a model does, and may do

;; You can give a model tools to read and change the context.  Each call of
;; a tool, and its result, is one dim line of the conversation with details
;; to unfold.  Before a model uses a tool that you have not allowed, the
;; turn waits and a block asks you; you can answer there, from the prompt,
;; or later: nothing else waits for it.

(defface contexture-conversation-tool '((t :inherit shadow))
  "Face of the lines that show which tools a model uses."
  :group 'contexture-conversation)

(defface contexture-conversation-approval '((t :inherit warning))
  "Face of the block that asks whether a model may use a tool."
  :group 'contexture-conversation)

(defface contexture-conversation-button '((t :inherit link))
  "Face of buttons in a conversation."
  :group 'contexture-conversation)

(cl-defstruct (contexture-conversation--approval (:constructor contexture-conversation--make-approval)
                                                 (:copier nil))
  "A model's request for approval to use TOOL with ARGUMENTS.
TEXT says what the call would do, and OUTSIDE names the place, if that is
outside of the project.  NUMBER is what the server calls the request.  The
markers FROM and TO are around the block that asks the user, and later around
the line with the decision.  CUT is non-nil if the block has only a part of the
request.  ASKED is the time when a window has shown the block, or a part of it;
SEEN that when windows have shown all of the request."
  number tool text outside arguments from to cut seen asked)

(defconst contexture-conversation-approval-buffer "*contexture: approval*"
  "Name of the buffer that shows a model's request in full.")

;;;; Lines with details

(defvar contexture-conversation-fold-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-conversation-toggle-details)
    (define-key map (kbd "TAB") #'contexture-conversation-toggle-details)
    (define-key map [mouse-1] #'contexture-conversation-toggle-details)
    map)
  "Keymap of the lines whose details can be shown and hidden.")

(defun contexture-conversation--draw-fold (line details &rest properties)
  "Draw LINE at the end of the conversation, with hidden DETAILS.
For DETAILS and PROPERTIES, see `contexture-conversation--fold'."
  (contexture-conversation--changing
    (goto-char contexture-conversation--tail)
    (contexture-conversation--end-line)
    (insert (apply #'contexture-conversation--fold line details properties))))

(defun contexture-conversation--fold (line details &rest properties)
  "Return LINE with hidden DETAILS below it, both with text PROPERTIES.
Leave out DETAILS that are nil, blank or the end of LINE."
  (let* ((details (contexture--trim-right (or details "")))
         (foldp (not (or (string-empty-p details) (string-suffix-p details line))))
         (fixed (apply #'contexture-conversation--fixed
                       'face (or (plist-get properties 'face) 'contexture-conversation-tool)
                       'contexture-note t
                       (cl-loop for (name value) on properties by #'cddr
                                unless (eq name 'face) append (list name value)))))
    (concat
     (apply #'propertize (concat (if foldp "+ " "  ") line "\n")
            'wrap-prefix "    "
            (if foldp
                `( contexture-fold t mouse-face highlight
                   help-echo "RET, mouse-1: show or hide the details"
                   keymap ,contexture-conversation-fold-map ,@fixed)
              fixed))
     (and foldp
          (apply #'propertize (concat (contexture-conversation--details details) "\n")
                 'invisible t 'contexture-details t fixed)))))

(defconst contexture-conversation--longest-details 20000
  "Maximum number of characters of the details of one line.")

(defun contexture-conversation--details (text)
  "Return TEXT as details: indented, shortened, without long lines.
Emacs is slow with long lines even if they are hidden."
  (let ((shown (contexture--visible
                (substring text 0 (min (length text) contexture-conversation--longest-details))
                t)))
    (concat
     (replace-regexp-in-string
      "^" "    " (replace-regexp-in-string "[^\n]\\{500\\}" "\\&\n" shown))
     (contexture-conversation--left
      (- (length text) contexture-conversation--longest-details)))))

(defun contexture-conversation--left (count)
  "Return a line that says that COUNT characters are left out, or \"\" for none."
  (if (<= count 0) ""
    (format "\n    ... and %s more" (contexture--count count "character"))))

(defun contexture-conversation-toggle-details (&optional event)
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
    (contexture-conversation--changing
      (let* ((start (line-beginning-position 2))
             (end (next-single-property-change start 'contexture-details nil
                                               contexture-conversation--tail))
             (hide (not (get-text-property start 'invisible)))
             (properties (text-properties-at (point))))
        (put-text-property start end 'invisible hide)
        (forward-char)
        (insert (apply #'propertize (if hide "+" "-") properties))
        (delete-region (1- (point)) (- (point) 2))))))

(defconst contexture-conversation--most-laid-out 50000
  "Maximum number of parts of JSON, and of lines in its strings, that are laid out.
What follows them stays as it is.")

(defconst contexture-conversation--deepest-column 40
  "Maximum number of columns by which a line of JSON is indented.
Otherwise, what nests deep would become as many times longer.")

(defun contexture-conversation--pretty (arguments)
  "Return the ARGUMENTS of a tool call as readable lines, or \"\" for none.
ARGUMENTS are JSON or Lisp data."
  (cond ((null arguments) "")
        ((not (stringp arguments))
         (let ((text (prin1-to-string arguments)))
           (if (> (length text) contexture-conversation--longest-details) text
             (contexture--trim-right (pp-to-string arguments)))))
        ((string-match-p "\\`[ \t\n]*{[ \t\n]*\\(?:}[ \t\n]*\\)?\\'" arguments) "")
        ((not (string-match-p "\\`[ \t\n]*[[{]" arguments)) arguments)
        (t (with-temp-buffer
             (insert arguments)
             (contexture-conversation--pretty-json)
             (buffer-string)))))

(defun contexture-conversation--pretty-beginning (arguments most)
  "Return the beginning of ARGUMENTS, of MOST characters, as readable lines.
The value is (TEXT . LEFT), where LEFT is the number of characters of the rest.
That is not looked at: laying out all of a long one would hold Emacs."
  (let* ((text (if (stringp arguments) arguments (prin1-to-string arguments)))
         (left (max 0 (- (length text) most))))
    (cons (contexture-conversation--pretty (if (= left 0) arguments (substring text 0 most)))
          left)))

(defun contexture-conversation--pretty-json ()
  "Break this buffer, which is JSON, into lines that show its structure.
Only the space between its parts changes: reading it and writing it again
by `json-pretty-print' takes a second for each megabyte."
  (let ((depth 0) (steps 0) (most contexture-conversation--most-laid-out))
    (cl-flet ((line () (insert "\n" (make-string (min (* 2 depth)
                                                      contexture-conversation--deepest-column)
                                                 ?\s)))
              (no-space () (delete-region (point) (progn (skip-chars-forward " \t\n\r")
                                                         (point)))))
      (goto-char (point-min))
      (no-space)
      (while (and (not (eobp)) (<= (cl-incf steps) most))
        (pcase (char-after)
          (?\" (cl-incf steps (contexture-conversation--pretty-string (- most steps))))
          ((or ?\{ ?\[) (forward-char) (no-space)
           (unless (memq (char-after) '(?\} ?\]))
             (setq depth (1+ depth))
             (line)))
          ((or ?\} ?\])
           (unless (memq (char-before) '(?\{ ?\[))
             (setq depth (max 0 (1- depth)))
             (line))
           (forward-char))
          (?, (forward-char) (no-space) (line))
          (?: (forward-char) (no-space) (insert " "))
          (_ (if (zerop (skip-chars-forward "^\"{}[],: \t\n\r")) (no-space))))))))

(defun contexture-conversation--pretty-string (most)
  "Go over the JSON string at point, and break it at each \\n in it, up to MOST.
Indent what follows like the string.  Quotes in strings stay escaped, so
that no text can look like more arguments.  Return the number of breaks."
  (forward-char)
  (let ((column (min (- (point) (line-beginning-position))
                     contexture-conversation--deepest-column))
        (breaks 0))
    (while (and (<= breaks most)
                (progn (skip-chars-forward "^\"\\\\") (eq (char-after) ?\\)))
      (if (not (eq (char-after (1+ (point))) ?n))
          (forward-char (min 2 (- (point-max) (point))))
        (delete-char 2)
        (insert "\n" (make-string column ?\s))
        (cl-incf breaks)))
    (unless (eobp) (forward-char))
    breaks))

(defun contexture-conversation--one-line (text &optional width)
  "Return the beginning of TEXT on one line of at most WIDTH columns, or 60."
  (let* ((width (or width 60))
         (line (contexture-conversation--beginning text width))
         ;; What takes no column is shown as an escape, or belongs to what does.
         (most (* 4 width)))
    (truncate-string-to-width
     (contexture--visible (if (> (length line) most) (substring line 0 most) line))
     width nil nil "...")))

(defun contexture-conversation--beginning (text width)
  "Return the beginning of TEXT, for about WIDTH columns, without line ends.
The rest of a long text is not looked at."
  (let* ((beg (or (string-match "[^ \t\n]" text) 0))
         (most (+ beg (* 20 width)))
         (line (replace-regexp-in-string "[ \t\n]+" " " (substring text beg
                                                                   (min most (length text))))))
    (if (> (length text) most) (concat line "...") (contexture--trim-right line))))

(defun contexture-conversation--tool-name (params)
  "Return the name of the tool in PARAMS, from the server's notification."
  (contexture--visible (or (plist-get params :tool) (plist-get params :name)
                           (plist-get params :text) "a tool")))

(defun contexture-conversation--draw-tool-call (params)
  "Draw the call of a tool that PARAMS, from the server, report."
  (pcase-let* ((given (plist-get params :arguments))
               (`(,pretty . ,left) (contexture-conversation--pretty-beginning
                                    given contexture-conversation--longest-details))
               (arguments (if (stringp given) given pretty)))
    (contexture-conversation--draw-fold
     (contexture--trim-right (format "calls %s %s" (contexture-conversation--tool-name params)
                                     (contexture-conversation--one-line arguments 50)))
     (and (> (length arguments) 50)
          (concat pretty (contexture-conversation--left left)))
     'contexture-used t)))

(defun contexture-conversation--draw-tool-result (params)
  "Draw the result of a tool that PARAMS, from the server, report.
Stop asking for approval of that tool, since it has run or failed."
  (dolist (approval contexture-conversation--approvals)
    (when (equal (contexture-conversation--approval-tool approval)
                 (contexture-conversation--tool-name params))
      (contexture-conversation--settle-approval approval "not decided")))
  (contexture-conversation--draw-fold (contexture-conversation--tool-result-line params) nil
                                      'contexture-result t 'contexture-used t))

(defun contexture-conversation--tool-result-line (params)
  "Return the line for the result of a tool that PARAMS, from the server, report."
  (let ((name (contexture-conversation--tool-name params))
        (text (or (plist-get params :text) "")))
    (contexture-conversation--one-line
     (if (string-prefix-p (concat name ":") text) text
       (format "%s: %s: %s" name
               (contexture--name (or (plist-get params :outcome) :done)) text))
     (- (contexture-conversation--width) 4))))

(defun contexture-conversation--add-results (message calls)
  "Add the texts of CALLS as details to the lines with tool results in MESSAGE.
CALLS are the plists of the turn's tool calls, in the order of the lines."
  (let ((at (marker-position (contexture-conversation--message-from message))))
    (while (and calls
                (setq at (text-property-any at contexture-conversation--tail
                                            'contexture-result t)))
      (let ((text (or (plist-get (car calls) :text) ""))
            (end (next-single-property-change at 'contexture-result nil
                                              contexture-conversation--tail)))
        (save-excursion
          (goto-char at)
          (setq end (min end (line-beginning-position 2))))
        (when (or (> (length text) 40) (string-search "\n" text))
          (contexture-conversation--changing
            (goto-char at)
            (insert (contexture-conversation--fold
                     (contexture--trim (buffer-substring-no-properties at end)) text
                     'contexture-used t))
            (setq end (+ (point) (- end at)))
            (delete-region (point) end)
            (setq end (point))))
        (setq at end)
        (pop calls)))))

;;;; Requests for approval

(defvar contexture-conversation-approval-map
  (let ((map (make-sparse-keymap)))
    (define-key map "y" #'contexture-conversation-approve-once)
    (define-key map "a" #'contexture-conversation-approve-always)
    (define-key map "n" #'contexture-conversation-refuse)
    (define-key map "v" #'contexture-conversation-view-approval)
    (define-key map (kbd "RET") #'contexture-conversation-approve)
    (define-key map [mouse-1] #'contexture-conversation-approve-click)
    map)
  "Keymap of the block that asks whether a model may use a tool.")

(defun contexture-conversation--draw-approval (params)
  "Draw a block that asks about the request for approval in PARAMS."
  (let* ((approval (contexture-conversation--make-approval
                    :number (plist-get params :approval)
                    :tool (contexture-conversation--tool-name params)
                    :text (or (plist-get params :text) "")
                    :outside (let ((outside (plist-get params :outside)))
                               (and (not (equal outside "")) outside))
                    :arguments (plist-get params :arguments))))
    (contexture--watch-shown #'contexture-conversation--note-approvals)
    (contexture-conversation--changing
      (goto-char contexture-conversation--tail)
      (contexture-conversation--end-line)
      (let ((from (point)))
        (insert (contexture-conversation--approval-block approval))
        (setf (contexture-conversation--approval-from approval) (copy-marker from)
              (contexture-conversation--approval-to approval) (copy-marker (point)))))
    (setq contexture-conversation--approvals
          (append contexture-conversation--approvals (list approval)))
    (contexture-conversation--draw-header)
    (contexture--message "The model wants to use %s; %s decides"
             (contexture-conversation--approval-tool approval)
             (substitute-command-keys "\\[contexture-conversation-approve]"))))

(defun contexture-conversation--approval-line (approval)
  "Return the text of APPROVAL on one line."
  (contexture-conversation--one-line (contexture-conversation--approval-text approval) 200))

(defun contexture-conversation--approval-outside-line (approval)
  "Return a line with the place outside of the project that APPROVAL is about.
It is never cut.  Return \"\" if there is no such place."
  (if-let* ((outside (contexture-conversation--approval-outside approval)))
      (format "Outside the project: %s\n" (contexture--visible outside))
    ""))

(defun contexture-conversation--approval-block (approval)
  "Return the block that asks about APPROVAL: its text, arguments and buttons.
Note whether it has all of the request."
  (pcase-let*
      ((line (contexture-conversation--approval-line approval))
       (`(,details . ,cut) (contexture-conversation--approval-details approval))
       (block (concat
               (propertize (concat
                            (format "The model wants to use %s: %s\n"
                                    (contexture-conversation--approval-tool approval) line)
                            (contexture-conversation--approval-outside-line approval))
                           'face 'contexture-conversation-approval 'wrap-prefix "  ")
               (contexture-conversation--approval-place)
               details
               "  " (contexture-conversation--approval-button "[y] once" 'once) "  "
               (contexture-conversation--approval-button "[a] always" 'always) "  "
               (contexture-conversation--approval-button "[n] refuse" 'refuse) "\n")))
    (setf (contexture-conversation--approval-cut approval)
          (or cut
              (not (equal line (contexture-conversation--approval-text approval)))
              ;; Its words may change places here.
              (string-match-p contexture--right-to-left block)))
    (add-text-properties
     0 (length block)
     (contexture-conversation--fixed 'contexture-approval approval
                                     'keymap contexture-conversation-approval-map)
     block)
    block))

(defun contexture-conversation--approval-place ()
  "Return a line with the project in which the model asks."
  (let ((project (plist-get contexture-conversation--session :project)))
    (propertize
     (format "  In %s\n"
             (if project (concat "the project " (contexture--visible
                                                 (contexture--abbreviate project)))
               "no project"))
     'face 'contexture-conversation-tool)))

(defconst contexture-conversation--longest-request 4000
  "Maximum number of characters of arguments that are laid out in a request.")

(defun contexture-conversation--approval-details (approval)
  "Return the arguments of APPROVAL as at most 12 indented lines.
If there is more, a last line names the key that shows all of it.  The value is
\(LINES . CUT), where CUT is non-nil if there is more."
  (pcase-let* ((given (contexture-conversation--approval-arguments approval))
               (`(,beginning . ,left) (contexture-conversation--pretty-beginning
                                       given contexture-conversation--longest-request))
               (text (contexture--visible beginning t))
               (width (- (contexture-conversation--width) 6))
               (shown (mapconcat (lambda (line) (truncate-string-to-width line width))
                                 (seq-take (split-string text "\n") 12) "\n"))
               (cut (not (and (= left 0) (equal shown text)))))
    (cons (if (string-empty-p text) ""
            (propertize (concat (replace-regexp-in-string "^" "  " shown)
                                (if (not cut) ""
                                  (format "\n  ... v shows all of it, %s"
                                          (contexture--count (+ left (length text))
                                                             "character")))
                                "\n")
                        'face 'contexture-conversation-tool))
          cut)))

(defvar-local contexture-conversation--viewed nil
  "The request that this buffer shows in full.")

(defun contexture-conversation-view-approval ()
  "Show the model's request in full, in its own buffer."
  (interactive)
  (let ((approval (contexture-conversation--approval-here)))
    (with-current-buffer (get-buffer-create contexture-conversation-approval-buffer)
      (let ((inhibit-read-only t))
        (special-mode)
        (erase-buffer)
        (insert (contexture-conversation--approval-tool approval) ": "
                (contexture--visible (contexture-conversation--approval-text approval) t) "\n"
                (contexture-conversation--approval-outside-line approval) "\n"
                (contexture--visible (contexture-conversation--pretty
                                      (contexture-conversation--approval-arguments approval))
                                     t)
                "\n")
        (contexture--show-in-order)
        (goto-char (point-min)))
      (setq contexture-conversation--viewed approval)
      (contexture--watch-shown #'contexture-conversation--note-view)
      (pop-to-buffer (current-buffer)))))

(defun contexture-conversation--note-view (window)
  "Note when WINDOW, which has been drawn, has shown the end of the request."
  (contexture--note-shown-on window)
  (when (>= contexture--shown (point-max))
    (contexture-conversation--seen contexture-conversation--viewed)))

(defun contexture-conversation--approval-button (label decision)
  "Return LABEL as a button for DECISION: `once', `always' or `refuse'."
  (propertize label 'face 'contexture-conversation-button 'mouse-face 'highlight
              'contexture-decision decision
              'help-echo (concat "mouse-1: " label)))

(defun contexture-conversation--approval-here ()
  "Return the model's request at point, or else the oldest undecided one.
Signal an error if there is none."
  (or (get-text-property (point) 'contexture-approval)
      (car contexture-conversation--approvals)
      (user-error "No request is waiting for your decision")))

(defun contexture-conversation-approve (decision &optional approval)
  "Decide on the model's request at point, or else on the oldest one.
DECISION is `once', `always' (allow this tool in this conversation from now
on), or `refuse'.  Interactively, take it from the button at point, or ask.
APPROVAL is the request that the user was asked about."
  (interactive
   ;; Another request may be the oldest one when the user has answered.
   (let ((approval (contexture-conversation--approval-here)))
     (list (or (get-text-property (point) 'contexture-decision)
               (contexture-conversation--read-decision approval))
           approval)))
  (contexture-conversation--rule (or approval (contexture-conversation--approval-here)) decision))

(defun contexture-conversation--read-decision (approval)
  "Ask the user to decide on APPROVAL; return `once', `always' or `refuse'."
  (unless executing-kbd-macro (discard-input)) ; what was typed before is no answer
  (pcase (prog1 (contexture--asking-in-order
                  (read-char-choice
                   (format "%s: %s%s[y] once  [a] always  [n] refuse "
                           (contexture-conversation--approval-tool approval)
                           (contexture-conversation--approval-line approval)
                           (if (contexture-conversation--approval-outside approval)
                               (concat "\n" (contexture-conversation--approval-outside-line
                                             approval))
                             "  "))
                   '(?y ?a ?n)))
           (message nil))               ; else the question stays in the echo area
    (?y 'once) (?a 'always) (_ 'refuse)))

(defun contexture-conversation-approve-once ()
  "Allow the model's request at point, or else the oldest one, this time only."
  (interactive)
  (contexture-conversation-approve 'once))

(defun contexture-conversation-approve-always ()
  "Allow a tool in this conversation, now and from now on without asking.
It is the tool of the model's request at point, or else of the oldest one."
  (interactive)
  (contexture-conversation-approve 'always))

(defun contexture-conversation-refuse ()
  "Refuse the model's request at point, or else the oldest one."
  (interactive)
  (contexture-conversation-approve 'refuse))

(defun contexture-conversation-approve-click (event)
  "Decide as the button says on which EVENT clicked; elsewhere do nothing."
  (interactive "e")
  (with-current-buffer (window-buffer (posn-window (event-start event)))
    (let* ((position (posn-point (event-start event)))
           (decision (get-text-property position 'contexture-decision)))
      (when decision
        (contexture-conversation--rule (get-text-property position 'contexture-approval)
                                 decision)))))

(defun contexture-conversation--seen (approval)
  "Note that all of APPROVAL has been shown now, if that is the first time."
  (unless (contexture-conversation--approval-seen approval)
    (setf (contexture-conversation--approval-seen approval) (float-time))))

(defun contexture-conversation--note-approvals (window)
  "Note when WINDOW, which has been drawn, shows the requests of this buffer."
  (dolist (approval contexture-conversation--approvals)
    (let ((from (contexture-conversation--approval-from approval))
          (to (contexture-conversation--approval-to approval)))
      (when (and (null (contexture-conversation--approval-asked approval))
                 (< (window-start window) to)
                 (< from (contexture--shown-to window)))
        (setf (contexture-conversation--approval-asked approval) (float-time)))
      (when (and (not (contexture-conversation--approval-cut approval))
                 (contexture--shows-p window from to))
        (contexture-conversation--seen approval)))))

(defun contexture-conversation--rule (approval decision)
  "Send the DECISION on APPROVAL, and show it in place of the block.
Show it as made only once the server has accepted it.  The call is never
repeated on another server: a server that replaces one that died asks
again, with other numbers."
  (unless (memq approval contexture-conversation--approvals)
    (user-error "You have already decided on this request"))
  (contexture--note-shown-anywhere)
  (contexture--check-read (or (contexture-conversation--approval-asked approval)
                              (setf (contexture-conversation--approval-asked approval)
                                    (float-time)))
                          (contexture-conversation--approval-seen approval))
  (unless (or (eq decision 'refuse)
              (contexture-conversation--approval-seen approval)
              (contexture--y-or-n-p "Not all of the request has been shown; allow it anyway? "))
    (user-error "Nothing was decided; v shows all of the request"))
  (pcase-let ((`(,telling ,told)
               (pcase decision
                 ('once '("allowing it once..." "allowed once"))
                 ('always '("allowing it from now on..." "allowed from now on"))
                 (_ '("refusing it..." "refused")))))
    (contexture-conversation--decided approval telling)
    (let ((contexture--own-call t))
      (contexture-conversation--request
       'approve (list :approval (contexture-conversation--approval-number approval)
                      :decision (intern (format ":%s" decision)))
       (lambda (_)
         (contexture-conversation--settle-approval approval told)
         (when (eq decision 'always) (contexture-conversation--fetch-settings)))
       (apply-partially #'contexture-conversation--not-decided approval)))))

(defun contexture-conversation--not-decided (approval problem)
  "Handle PROBLEM, for which the server did not accept a decision on APPROVAL.
Show PROBLEM and ask again, unless the server no longer waits for a decision."
  (if (or (null contexture-conversation--turn)
          (eq (plist-get (plist-get problem :data) :kind) :no-such-approval))
      (contexture-conversation--settle-approval
       approval "not decided; the server no longer waits for a decision")
    (contexture-conversation--replace-block approval (contexture-conversation--approval-block approval))
    (push approval contexture-conversation--approvals)
    (contexture--watch-shown #'contexture-conversation--note-approvals)
    (contexture-conversation--draw-header)
    (contexture-conversation--show-problem problem)))

(defun contexture-conversation--settle-approval (approval outcome)
  "Replace the block of APPROVAL with OUTCOME, a phrase, for good."
  (contexture-conversation--decided approval outcome)
  (set-marker (contexture-conversation--approval-from approval) nil)
  (set-marker (contexture-conversation--approval-to approval) nil))

(defun contexture-conversation--decided (approval words)
  "Stop asking about APPROVAL, and show WORDS, a phrase, in place of its block."
  (setq contexture-conversation--approvals (delq approval contexture-conversation--approvals)
        ;; The next one may come into view, or to point, in its place.
        contexture--appeared (float-time))
  (unless contexture-conversation--approvals
    (contexture--unwatch-shown #'contexture-conversation--note-approvals))
  (contexture--with-live-buffer (get-buffer contexture-conversation-approval-buffer)
    (when (eq contexture-conversation--viewed approval)
      (contexture--unwatch-shown #'contexture-conversation--note-view)))
  (contexture-conversation--replace-block
   approval
   (apply #'propertize
          (format "  %s: %s\n" (contexture-conversation--approval-tool approval) words)
          'face 'contexture-conversation-tool 'contexture-note t (contexture-conversation--fixed)))
  (contexture-conversation--draw-header))

(defun contexture-conversation--replace-block (approval text)
  "Show TEXT in place of the block of APPROVAL, if that is still there."
  (let ((from (contexture-conversation--approval-from approval))
        (to (contexture-conversation--approval-to approval)))
    (when (and (marker-position from) (< from to))
      (contexture-conversation--changing
        (goto-char from)
        (insert text)
        (delete-region (point) to)))))

(defun contexture-conversation--drop-approvals ()
  "Stop asking about undecided requests, for which the server no longer waits."
  (dolist (approval contexture-conversation--approvals)
    (contexture-conversation--settle-approval approval "not decided")))

;;;; Settings that the server keeps

(defvar-local contexture-conversation--configuring 0
  "Number of unanswered calls that store or fetch settings.")

(defun contexture-conversation--configure (&rest settings)
  "Store SETTINGS, keywords and values, for this conversation on the server.
Show the settings in effect, which the server returns."
  (contexture-conversation--configure-then settings #'ignore #'ignore))

(defun contexture-conversation--configure-then (settings done refused)
  "Store SETTINGS, a plist, for this conversation, and show those in effect.
Then call DONE, or REFUSED if the server refuses the settings.  Without
SETTINGS, only fetch and show those in effect."
  (cl-incf contexture-conversation--configuring)
  (contexture-conversation--request
   'configure-session
   (append (list :session (contexture-conversation--session-id)) settings
           (and settings (list :request-key (contexture--make-request-key))))
   (lambda (result)
     (when (= 0 (cl-decf contexture-conversation--configuring))
       (when (plist-member result :manage)
         (contexture-conversation--take :manage (and (plist-get result :manage) t))
         (when (plist-get result :template)
           (contexture-conversation--take :template
                                          (contexture--name (plist-get result :template)))))
       (when (plist-member result :tools)
         (setq contexture-conversation--tool-settings
               (list :tools (plist-get result :tools)
                     :allowed-tools (plist-get result :allowed-tools))))
       (contexture-conversation--draw-header))
     (funcall done))
   (lambda (problem)
     (cl-decf contexture-conversation--configuring)
     (when settings
       (contexture-conversation--show-problem problem)
       (funcall refused)
       (contexture-conversation--fetch-settings)))))

(defun contexture-conversation--fetch-settings ()
  "Fetch the settings in effect for this conversation, and show them."
  (contexture-conversation--configure))

(defun contexture-conversation--take (key value)
  "Set KEY of this conversation's settings to VALUE, in this buffer only."
  (setq contexture-conversation--settings (plist-put contexture-conversation--settings key value)))

(defun contexture-conversation--choose (key value)
  "Set KEY of this conversation's settings to VALUE, and save it to the file."
  (contexture-conversation--take key value)
  (contexture-conversation--draw-header)
  (contexture-conversation--keep-draft))

;;;; Choose tools

(defun contexture-conversation-tools (what &optional tool)
  "Choose which tools models may use in this conversation.
WHAT is `on', `off', `allow' or `ask'.  `on' offers the server's tools and
asks you before each use; `off' offers none of them.  `allow' lets models use
TOOL without asking you, and `ask' has them ask you again."
  (interactive
   (let ((what (intern (completing-read "Tools: " '("on" "off" "allow" "ask") nil t))))
     (list what (when (memq what '(allow ask))
                  (completing-read "Tool: " (contexture-conversation--tool-choices what)
                                   nil t)))))
  ;; The server takes only the names of tools that there are now.
  (let ((allowed (seq-intersection (contexture-conversation--allowed-tools)
                                   (contexture-conversation--all-tools))))
    (when (and (memq what '(allow ask)) (not (member tool (contexture-conversation--all-tools))))
      (contexture--user-error "There is no tool %s; the tools are %s" tool
                  (mapconcat #'identity (contexture-conversation--all-tools) ", ")))
    (pcase what
      ('on (contexture-conversation--configure :tools t))
      ('off (contexture-conversation--configure :tools []))
      ('allow (contexture-conversation--configure
               :allowed-tools (vconcat (remove tool allowed) (list tool))))
      ('ask (contexture-conversation--configure
             :allowed-tools (vconcat (remove tool allowed))))
      (_ (user-error "/tools takes on, off, list, allow NAME or ask NAME")))))

(defun contexture-conversation--all-tools ()
  "Return the names of the server's tools, and of Emacs's tools that are on."
  (append (mapcar #'car contexture--server-tools)
          (and contexture-tools (fboundp 'contexture-tools--names)
               (contexture-tools--names))))

(defun contexture-conversation--allowed-tools ()
  "Return the names of the tools that need no approval in this conversation."
  (mapcar #'contexture--name (plist-get contexture-conversation--tool-settings :allowed-tools)))

(defun contexture-conversation--tool-choices (what)
  "Return the names of the tools to which WHAT, `allow' or `ask', can apply."
  (let ((allowed (contexture-conversation--allowed-tools)))
    (if (eq what 'ask) allowed
      (cl-set-difference (contexture-conversation--all-tools) allowed :test #'equal))))

(defun contexture-conversation--tools-text ()
  "Return lines that list the tools, and whether models may use each here."
  (let ((tools (plist-get contexture-conversation--tool-settings :tools))
        (allowed (contexture-conversation--allowed-tools)))
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
              (mapcar #'car contexture--server-tools))
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

(defcustom contexture-conversation-show-reasoning t
  "Non-nil means show a model's reasoning before its answer."
  :type 'boolean
  :group 'contexture-conversation)

(defconst contexture-conversation--draw-characters 2000
  "Maximum number of characters of an answer to draw at once.")

(cl-defstruct (contexture-conversation--turn (:constructor contexture-conversation--make-turn)
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

(defvar contexture-conversation--turns nil
  "Turns that are being answered, in all buffers, the newest first.")

;;;; Pieces

(defun contexture-conversation--progress (method params)
  "Queue the piece of an answer in PARAMS if METHOD is `progress'.
PARAMS name the turn.  A status, and a retry before the answer has begun, are
remarks instead; see `contexture-conversation--tell'."
  (when (eq method 'progress)
    (when-let* ((turn (cl-find (plist-get params :id) contexture-conversation--turns
                               :key #'contexture-conversation--turn-id)))
      (pcase (plist-get params :kind)
        ((and (or :text :reasoning) kind)
         (push (cons kind (or (plist-get params :text) ""))
               (contexture-conversation--turn-pending turn))
         (contexture-conversation--draw-soon turn))
        ((and (or :tool-call :tool-result :approval) kind)
         (push (cons kind params) (contexture-conversation--turn-pending turn))
         (contexture-conversation--draw-soon turn))
        (:retry (if (not (or (contexture-conversation--turn-answer turn)
                             (contexture-conversation--turn-pending turn)))
                    (contexture-conversation--tell turn (plist-get params :text))
                  (push (cons :retry params)
                        (contexture-conversation--turn-pending turn))
                  (contexture-conversation--draw-soon turn)))
        (:status (contexture-conversation--tell turn (plist-get params :text)))))))

(defun contexture-conversation--tell (turn text)
  "Show TEXT, a remark about TURN; do nothing if it is nil.
If the answer has begun, show it after the answer, else now."
  (let ((buffer (contexture-conversation--turn-buffer turn)))
    (when (and text (buffer-live-p buffer))
      (with-current-buffer buffer
        (if (or (contexture-conversation--turn-answer turn)
                (contexture-conversation--turn-pending turn))
            (push text (contexture-conversation--turn-notes turn))
          (contexture-conversation--note text))))))

(defun contexture-conversation--draw-soon (turn)
  "Schedule drawing the pending pieces of TURN."
  (unless (contexture-conversation--turn-timer turn)
    (setf (contexture-conversation--turn-timer turn)
          (run-at-time contexture-conversation--draw-seconds nil
                       #'contexture-conversation--draw-pending turn))))

(defun contexture-conversation--draw-pending (turn)
  "Draw the pending pieces of TURN; if there are many, only the first ones.
The others are drawn a little later."
  (when-let* ((timer (contexture-conversation--turn-timer turn)))
    (cancel-timer timer)
    (setf (contexture-conversation--turn-timer turn) nil))
  (when (and (contexture-conversation--turn-pending turn)
             (buffer-live-p (contexture-conversation--turn-buffer turn)))
    (let ((pieces (nreverse (contexture-conversation--turn-pending turn)))
          (end (+ (float-time) contexture-conversation--draw-at-once)))
      (setf (contexture-conversation--turn-pending turn) nil)
      (with-current-buffer (contexture-conversation--turn-buffer turn)
        (while (progn (setq pieces (if (stringp (cdar pieces))
                                       (contexture-conversation--draw-texts turn pieces)
                                     (contexture-conversation--draw-use turn
                                                                        (caar pieces)
                                                                        (cdar pieces))
                                     (cdr pieces)))
                      (and pieces (< (float-time) end))))
        (contexture-conversation--tell-watch turn 'more))
      (when pieces
        (setf (contexture-conversation--turn-pending turn) (nreverse pieces))
        (contexture-conversation--draw-soon turn)))))

(defun contexture-conversation--watcher (turn)
  "Return the function that is told of the answer of TURN, or nil."
  (when-let* ((origin (contexture-conversation--message-origin
                       (contexture-conversation--turn-question turn))))
    (contexture-conversation--origin-watch origin)))

(defun contexture-conversation--tell-watch (turn state &optional answer)
  "Call the watcher of TURN, if any, with ANSWER and STATE.
ANSWER defaults to what is drawn so far; STATE is `more', `done' or `failed'."
  (when-let* ((watch (contexture-conversation--watcher turn)))
    (funcall watch (or answer (contexture-conversation--so-far turn)) state)))

(defun contexture-conversation--draw-texts (turn pieces)
  "Draw the texts of one kind at the head of TURN's PIECES; return the rest.
Draw at most `contexture-conversation--draw-characters'."
  (let ((room contexture-conversation--draw-characters) (kind (caar pieces)) texts)
    (while (and pieces (> room 0) (eq kind (caar pieces)))
      (let ((text (cdr (pop pieces))))
        (when (> (length text) room)
          (push (cons kind (substring text room)) pieces)
          (setq text (substring text 0 room)))
        (setq room (- room (max 1 (length text))))
        (push text texts)))
    (contexture-conversation--draw turn kind (apply #'concat (nreverse texts)))
    pieces))

(defun contexture-conversation--when-drawn (turn function argument)
  "Call FUNCTION with TURN and ARGUMENT once all of TURN's pieces are drawn.
Return nil, without calling FUNCTION, if they are drawn now.  Otherwise
return non-nil: FUNCTION is called later, so that Emacs handles input in
between."
  (contexture-conversation--draw-pending turn)
  (when (contexture-conversation--turn-pending turn)
    (let ((buffer (current-buffer)))
      (run-at-time contexture-conversation--draw-seconds nil
                   (lambda ()
                     (when (and (buffer-live-p buffer)
                                (memq turn contexture-conversation--turns))
                       (with-current-buffer buffer
                         (funcall function turn argument))))))))

(defun contexture-conversation--draw (turn kind text)
  "Draw TEXT, the next piece of TURN's answer, in this buffer.
KIND is `:text' or `:reasoning'; the latter is not drawn after a part's text."
  (unless (or (string-empty-p text)
              (and (eq kind :reasoning) (not contexture-conversation-show-reasoning)))
    (contexture-conversation--begin-answer turn)
    (contexture-conversation--changing
      (goto-char contexture-conversation--tail)
      (if (eq kind :reasoning)
          (unless (contexture-conversation--turn-state turn)
            (insert (apply #'propertize (contexture--visible text t)
                           'face 'contexture-conversation-reasoning
                           'contexture-reasoning t
                           (contexture-conversation--fixed))))
        (unless (contexture-conversation--turn-state turn)
          (contexture-conversation--end-line)
          (setf (contexture-conversation--turn-start turn) (copy-marker (point))
                (contexture-conversation--turn-state turn)
                (contexture-markdown--begin (contexture-conversation--fixed))))
        (push text (contexture-conversation--turn-pieces turn))
        (contexture-markdown--insert (contexture-conversation--turn-state turn) text)))))

(defun contexture-conversation--draw-use (turn kind params)
  "Draw what PARAMS, of KIND, report of TURN between texts of its answer.
KIND is `:tool-call', `:tool-result', `:approval' or `:retry'."
  (contexture-conversation--begin-answer turn)
  (contexture-conversation--end-part turn)
  (funcall (pcase kind
             (:tool-call #'contexture-conversation--draw-tool-call)
             (:tool-result #'contexture-conversation--draw-tool-result)
             (:retry (lambda (params)
                       (when-let* ((text (plist-get params :text)))
                         (contexture-conversation--note text))))
             (_ #'contexture-conversation--draw-approval))
           params))

(defun contexture-conversation--end-part (turn)
  "Finish the current part of TURN's answer, if there is one."
  (when-let* ((state (contexture-conversation--turn-state turn)))
    (contexture-conversation--changing
      (goto-char contexture-conversation--tail)
      (contexture-markdown--end state))
    (push (contexture-conversation--last-part turn) (contexture-conversation--turn-earlier turn))
    (setf (contexture-conversation--turn-state turn) nil
          (contexture-conversation--turn-pieces turn) nil)))

(defun contexture-conversation--last-part (turn)
  "Return the drawn text of the current part of TURN's answer, or \"\"."
  (apply #'concat (reverse (contexture-conversation--turn-pieces turn))))

(defun contexture-conversation--begin-answer (turn)
  "Draw the heading of TURN's answer, unless the answer has begun."
  (unless (contexture-conversation--turn-answer turn)
    (setf (contexture-conversation--turn-answer turn)
          (contexture-conversation--begin-message :assistant))))

(defun contexture-conversation--asked-again ()
  "Remove partial answers after a reconnection, which repeats the calls.
The server that was giving the answers is gone, and the new one begins
anew.  Cancel again the calls that were cancelled before."
  (dolist (turn contexture-conversation--turns)
    (when (contexture-conversation--turn-id turn)
      (setf (contexture-conversation--turn-pending turn) nil)
      (when (and (contexture-conversation--turn-answer turn)
                 (buffer-live-p (contexture-conversation--turn-buffer turn)))
        (with-current-buffer (contexture-conversation--turn-buffer turn)
          (contexture-conversation--drop-approvals)
          (contexture-conversation--delete-from (contexture-conversation--turn-answer turn))
          (setf (contexture-conversation--turn-answer turn) nil
                (contexture-conversation--turn-earlier turn) nil
                (contexture-conversation--turn-state turn) nil
                (contexture-conversation--turn-pieces turn) nil)
          (contexture-conversation--note "The connection to the server was lost; the question was sent again.")))
      (when (contexture-conversation--turn-asked turn)
        (contexture-conversation--send-cancel turn)))))

;;; One question and its answer

;; Sends the text at the prompt, has the answer drawn while it comes, and
;; ends the turn with an answer, an error, or a cancellation.  A question
;; that was not answered goes back to the prompt.

(defvar contexture-conversation-turn-ended-hook nil
  "Hook run in a conversation's buffer when a turn has ended, answered or not.")

(defcustom contexture-conversation-answered-hook nil
  "Normal hook run in a conversation's buffer when an answer is complete."
  :type 'hook
  :group 'contexture-conversation)

;;;; Sending

(defconst contexture-conversation--directive "@context-helper "
  "Prefix of a question that names its own template.")

(defconst contexture-conversation--own-template "\\`[ \t]*@context-helper[ \t]+[^ \t\n]+"
  "Regexp for the beginning of a question that names its own template.")

(defun contexture-conversation-send ()
  "Send the text at the prompt, or run it if it is a slash command.
If point is above the prompt, only move it to the end of the text there."
  (interactive)
  (cond ((< (point) contexture-conversation--input) (goto-char (point-max)))
        ((string-blank-p (contexture-conversation--text))
         (user-error "Write something at the prompt first"))
        ((contexture-conversation--command-p (contexture-conversation--text))
         (contexture-conversation--run-command (contexture-conversation--text)))
        (t (contexture-conversation--check-idle)
           (contexture-conversation--send-text
            ;; With the properties of its mentions.
            (contexture--trim (buffer-substring contexture-conversation--input (point-max)))))))

(defun contexture-conversation--command-p (text)
  "Return non-nil if TEXT is a slash command, and not a path such as /tmp/x."
  (string-match-p "\\`/[a-z-]*\\(?:[ \t]\\|[ \t\n]*\\'\\)" text))

(defun contexture-conversation--check-idle ()
  "Signal an error if a question of this buffer is still being answered."
  (when (contexture-conversation--busy-p)
    (contexture--user-error "The last question is still being answered; %s stops the answer"
                (substitute-command-keys "\\[contexture-conversation-cancel]"))))

(defun contexture-conversation--send-text (text)
  "Send TEXT, the text at the prompt, and empty the prompt.
If a question is being changed, TEXT replaces that and all that followed."
  (contexture-conversation--set-text "")
  (setq buffer-undo-list nil)
  (if (bound-and-true-p contexture-conversation--editing)
      (let ((question contexture-conversation--editing))
        (setq contexture-conversation--editing nil)
        (if (memq question contexture-conversation--messages)
            (contexture-conversation--ask-instead question text)
          (contexture-conversation--ask text)))
    (contexture-conversation--ask text)))

;;;; What goes with one question

;; What a question mentions after `@' goes with that question, and with no
;; later one.  The server holds it in a context of its own, which only that
;; call names.  The draft at the prompt has such a context too, so that it is
;; shown and counted before it is sent.

(cl-defstruct (contexture-conversation--mentioned (:constructor contexture-conversation--make-mentioned)
                                                  (:copier nil))
  "What a text mentions: CALLS add it to the context MANAGER on the server.
OUTCOMES are theirs, or `asked' until the server has answered; then THEN, if
given, is called with them."
  manager calls outcomes then)

(defvar-local contexture-conversation--mentioned nil
  "What the text at the prompt mentions; nil if the server has no items for it.")

(defvar-local contexture-conversation--mentions-sent 0
  "Number of questions with mentions that were sent from this buffer.")

(defun contexture-conversation--managers ()
  "Return the context of this conversation and of the text at the prompt."
  (if (null contexture-conversation--mentioned) contexture-context
    (append (ensure-list contexture-context)
            (list (contexture-conversation--mentioned-manager contexture-conversation--mentioned)))))

(defun contexture-conversation--with-question-p (item)
  "Return non-nil if ITEM goes with the text at the prompt only."
  (and contexture-conversation--mentioned
       (equal (plist-get item :manager)
              (contexture-conversation--mentioned-manager contexture-conversation--mentioned))))

(defun contexture-conversation--begin-mentions (text)
  "Return the state of finding out what the mentions in TEXT mean.
What is between code fences mentions nothing."
  (contexture-mention--begin-meanings
   (contexture-conversation--without-code
    (replace-regexp-in-string contexture-conversation--own-template "" text))
   (cl-remove-if #'contexture-conversation--with-question-p contexture-conversation--items)))

(defun contexture-conversation--look-up (asked)
  "Find out for a moment what the mentions of ASKED mean.
Return t when all are known.  If that fails, none of the others will be."
  (condition-case problem (contexture-mention--look-up asked)
    (error (contexture--message "Contexture: %s" (error-message-string problem)) t)))

(defun contexture-conversation--when-known (asked function)
  "Call FUNCTION with ASKED once it is known what its mentions mean.
It is called in this buffer.  Return t if that is now, and else nil:
Emacs handles input in between."
  (if (contexture-conversation--look-up asked) (progn (funcall function asked) t)
    (let ((buffer (current-buffer)))
      (run-at-time contexture-conversation--draw-seconds nil
                   (lambda ()
                     (contexture--with-live-buffer buffer
                       (contexture-conversation--when-known asked function)))))
    nil))

(defun contexture-conversation--without-code (text)
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

(defun contexture-conversation--hold-mentions (calls)
  "Have the server hold for this prompt what CALLS add, and nothing else."
  (unless (equal calls (and contexture-conversation--mentioned
                            (contexture-conversation--mentioned-calls contexture-conversation--mentioned)))
    (let* ((manager (format "*session %s question %d*" (contexture-conversation--session-id)
                            (mod contexture-conversation--mentions-sent 2)))
           (mentioned (contexture-conversation--make-mentioned
                       :manager manager :calls calls :outcomes 'asked)))
      (setq contexture-conversation--mentioned (and calls mentioned))
      (puthash manager "the question" contexture--labels)
      (let ((buffer (current-buffer)))
        (contexture-request-batch-async
         `((remove-items :manager ,manager :all t :reset t)
           ,@(cl-loop for (method . params) in calls
                      collect `(,method :manager ,manager ,@params :brief t)))
         :success
         (lambda (outcomes)
           (setf (contexture-conversation--mentioned-outcomes mentioned) (cdr outcomes))
           (when-let* ((then (contexture-conversation--mentioned-then mentioned)))
             (funcall then (cdr outcomes)))
           (cl-loop for (_ . params) in calls
                    for outcome in (cdr outcomes)
                    for item = (plist-get outcome :result)
                    when item
                    do (contexture-live--added manager item (plist-get params :content)))
           (contexture--with-live-buffer buffer (contexture-conversation--fetch-items))))))))

(defvar-local contexture-conversation--draft-asked nil
  "The text at the prompt, if it is not known yet what its mentions mean.
It is a pair of that text and the state of finding that out.")

(defun contexture-conversation--draft-mentions ()
  "Have the server hold what the text at the prompt mentions, if it is a question.
Return the contexts to send, or nil if nothing is mentioned.  If it takes long
to find out what is mentioned, this is asked for again."
  (let ((text (buffer-substring contexture-conversation--input (point-max)))
        (last (cl-shiftf contexture-conversation--draft-asked nil)))
    (if (contexture-conversation--command-p text) (contexture-conversation--hold-mentions nil)
      (let ((asked (if (equal-including-properties text (car last)) (cdr last)
                     (contexture-conversation--begin-mentions text))))
        (if (contexture-conversation--look-up asked)
            (contexture-conversation--hold-mentions (car (contexture-mention--meanings asked)))
          (setq contexture-conversation--draft-asked (cons text asked))
          (contexture-count--changed (plist-get contexture-conversation--session :id) t))))
    (and contexture-conversation--mentioned (contexture-conversation--managers))))

(defvar-local contexture-conversation--mentions-told nil
  "What the user was told of the mentions of the last question, or nil.")

(defun contexture-conversation--take-mentions (asked)
  "Have the server hold what ASKED, about to be sent, mentions, and tell the user.
Return it as a `contexture-conversation--mentioned', or nil if that is
nothing."
  (pcase-let ((`(,calls ,unknown ,remarks) (contexture-mention--meanings asked)))
    (contexture-conversation--hold-mentions calls)
    (setq contexture-conversation--mentions-told nil)
    (let ((mentioned contexture-conversation--mentioned)
          (remarks (contexture-mention--remarks unknown remarks)))
      (cond ((and mentioned (eq (contexture-conversation--mentioned-outcomes mentioned) 'asked))
             (setf (contexture-conversation--mentioned-then mentioned)
                   (lambda (outcomes) (contexture-conversation--tell-mentioned outcomes remarks))))
            (mentioned (contexture-conversation--tell-mentioned
                        (contexture-conversation--mentioned-outcomes mentioned) remarks))
            (remarks
             (setq contexture-conversation--mentions-told (string-join remarks "; "))
             (contexture--message "Contexture: %s" contexture-conversation--mentions-told)))
      mentioned)))

(defun contexture-conversation--tell-mentioned (outcomes remarks)
  "Say what OUTCOMES, of calls for a question's mentions, send; then say REMARKS."
  (let ((items (delq nil (contexture--pluck :result outcomes)))
        (errors (delq nil (contexture--pluck :error outcomes))))
    (setq contexture-conversation--mentions-told
          (string-join
           `(,@(and items
                    (list (concat "With this question only: "
                                  (mapconcat #'contexture-conversation--mentioned-text items ", "))))
             ,@(mapcar #'contexture--error-text errors) ,@remarks)
           "; "))
    (contexture--message "%s" contexture-conversation--mentions-told)))

(defun contexture-conversation--mentioned-text (item)
  "Return a phrase for ITEM, which a question mentions, with its tokens."
  (format "%s (%s)" (contexture--description (plist-get item :metadata))
          (contexture--count (or (plist-get item :tokens) 0) "token")))

(defun contexture-conversation--drop-mentions (mentioned)
  "Have the server forget MENTIONED, whose question was answered or given up."
  (when (and mentioned (contexture-running-p))
    (contexture-conversation--request
     'remove-items (list :manager (contexture-conversation--mentioned-manager mentioned)
                         :all t :reset t)
     #'ignore #'ignore)))

;;;; Asking

(defvar contexture-conversation--recent nil
  "Buffers of conversations, the last used first.
Opening a conversation and asking in it count as use.")

(defun contexture-conversation--used ()
  "Return the ids of the conversations that were used, the last used first."
  (or contexture-conversation--used
      (setq contexture-conversation--used (plist-get (contexture-conversation--file-contents) :used))))

(defun contexture-conversation--note-used (buffer)
  "Record that BUFFER, of a conversation, was used last; return BUFFER."
  (setq contexture-conversation--recent
        (cons buffer (cl-remove-if-not #'buffer-live-p
                                       (remq buffer contexture-conversation--recent))))
  (let ((id (plist-get (buffer-local-value 'contexture-conversation--session buffer) :id)))
    (unless (equal id (car (contexture-conversation--used)))
      (setq contexture-conversation--used
            (seq-take (cons id (remove id contexture-conversation--used)) 200))
      (contexture-conversation--save)))
  buffer)

(defun contexture-conversation--ask (text &optional origin)
  "Ask TEXT, which has code from ORIGIN, in the conversation of this buffer.
ORIGIN is nil if TEXT was written at the prompt.  The model is sent the
conversation, so this waits until the buffer shows it."
  (if contexture-conversation--loaded (contexture-conversation--ask-loaded text origin)
    (let ((mine (setq contexture-conversation--preparing (cons 'log text))))
      (push (lambda ()
              (when (eq mine contexture-conversation--preparing)
                (setq contexture-conversation--preparing nil)
                (contexture-conversation--ask-loaded text origin)))
            contexture-conversation--once-loaded))))

(defun contexture-conversation--ask-loaded (text origin)
  "Ask TEXT, with code from ORIGIN, as `contexture-conversation--ask' does.
The conversation is drawn.  This may take until it is known what TEXT mentions."
  (let (mine)
    (unless (contexture-conversation--when-known
             (contexture-conversation--begin-mentions text)
             (lambda (asked)
               (when (eq mine contexture-conversation--preparing)
                 (setq contexture-conversation--preparing nil)
                 (contexture-conversation--ask-now text origin asked))))
      (setq mine (cons 'mentions text)
            contexture-conversation--preparing mine))))

(defun contexture-conversation--ask-now (text origin asked)
  "Ask TEXT, with code from ORIGIN, as `contexture-conversation--ask' does.
The conversation is drawn, and ASKED tells what TEXT mentions."
  (contexture-conversation--note-used (current-buffer))
  (let* ((mentioned (contexture-conversation--take-mentions asked))
         (text (substring-no-properties text))
         (turn (contexture-conversation--make-turn
               :buffer (current-buffer) :text text :mentioned mentioned
               :managers (and mentioned (contexture-conversation--managers))
               :key (contexture--make-request-key)
               :question (contexture-conversation--add-message :user text nil :origin origin))))
    (when mentioned
      (setq contexture-conversation--items (cl-remove-if #'contexture-conversation--with-question-p
                                                         contexture-conversation--items)
            contexture-conversation--mentioned nil) ; the next draft has its own
      (cl-incf contexture-conversation--mentions-sent)
      (contexture-conversation--draw-context))
    (contexture-conversation--remember text)
    (contexture-conversation--show-end)
    (setq contexture-conversation--turn turn)
    (when (and (string-match-p "\\`conversation-[0-9]+\\'"
                               (plist-get contexture-conversation--session :session))
               (null (cdr contexture-conversation--messages)))
      (contexture-conversation--rename
       (contexture--trim (contexture-conversation--first-words
                          (or (and origin (contexture-conversation--origin-name origin)) text)))
       1))
    (push turn contexture-conversation--turns)
    (add-hook 'contexture-notification-functions #'contexture-conversation--progress)
    (add-hook 'contexture-connected-hook #'contexture-conversation--asked-again)
    (contexture-conversation--draw-header)
    (contexture-conversation--keep-draft)
    (contexture-conversation--take-checkpoint turn)))

(defun contexture-conversation--rename (name number)
  "Rename this conversation to NAME, or to \"NAME (NUMBER)\" if NUMBER is not 1.
If another conversation has that name, try the next number."
  (contexture-conversation--request
   'configure-session
   (list :session (contexture-conversation--session-id)
         :name (if (= number 1) name (format "%s (%d)" name number)))
   (lambda (session) (contexture-conversation--renamed (plist-get session :session)))
   (lambda (problem)
     (when (eq (plist-get (plist-get problem :data) :kind) :session-exists)
       (contexture-conversation--rename name (1+ number))))))

(defun contexture-conversation--renamed (name)
  "Record that this buffer's conversation is called NAME now.
Rename the buffer, and move what is saved to the new name."
  (let ((old (plist-get contexture-conversation--session :session)))
    (when (and name (not (equal name old)))
      (setq contexture-conversation--session
            (plist-put (copy-sequence contexture-conversation--session) :session name)
            contexture-conversation--kept nil)
      (contexture-conversation--save old nil nil)
      (contexture-conversation--keep-draft)
      (when (string-prefix-p (contexture-conversation--buffer-name old) (buffer-name))
        (rename-buffer (contexture-conversation--buffer-name name) t))
      (contexture-conversation--draw-header))))

(defun contexture-conversation--buffer-name (name)
  "Return the name of the buffer for the conversation called NAME.
It is short, so that the mode line has room for the token count."
  (contexture--format "*contexture: %s*"
                      (truncate-string-to-width (or name "") 20 nil nil "…")))

(defun contexture-conversation--take-checkpoint (turn)
  "Note where the question of TURN begins, to go back to; then ask the model.
Ask even if that cannot be noted."
  (contexture-conversation--request
   'checkpoint
   (list :session (contexture-conversation--session-id)
         :message (concat "Before: " (contexture-conversation--first-words
                                      (contexture-conversation--turn-text turn)))
         :request-key (concat (contexture-conversation--turn-key turn) "-before"))
   (lambda (result)
     (setf (contexture-conversation--message-checkpoint
            (contexture-conversation--turn-question turn))
           (plist-get result :checkpoint))
     (contexture-conversation--chat turn))
   (lambda (_) (contexture-conversation--chat turn))))

(defun contexture-conversation--first-words (text)
  "Return the beginning of TEXT on one line, at most 50 columns."
  (truncate-string-to-width (contexture-conversation--beginning text 50) 50 nil nil "..."))

(defun contexture-conversation--session-id ()
  "Return the id of this buffer's conversation, or its name if that is all known."
  (or (plist-get contexture-conversation--session :id)
      (plist-get contexture-conversation--session :session)))

(defun contexture-conversation--chat (turn)
  "Ask the model the question of TURN, a turn of this buffer.
If the user cancelled it meanwhile, end it instead; do nothing if it has
ended."
  (cond ((not (memq turn contexture-conversation--turns)))
        ((contexture-conversation--turn-asked turn)
         (contexture-conversation--failed turn '(:code -32800 :message "cancelled")))
        ((bound-and-true-p contexture-provider--pending)
         (let ((buffer (current-buffer)))
           (contexture-provider--when-ready
            (lambda ()
              (contexture--with-live-buffer buffer
                (contexture-conversation--chat turn))))))
        (t
         (setf (contexture-conversation--turn-id turn)
               (contexture-conversation--request
                'chat
                (contexture-conversation--chat-params
                 (contexture-conversation--turn-text turn)
                 (contexture-conversation--turn-managers turn)
                 :request-key (contexture-conversation--turn-key turn))
                (apply-partially #'contexture-conversation--answered turn)
                (apply-partially #'contexture-conversation--refused turn))
               (contexture-conversation--turn-connection turn) contexture--connection))))

(defvar contexture-conversation--unknown nil
  "Parameters of `chat', keywords, that the server does not know.")

(defun contexture-conversation--chat-params (text managers &rest more)
  "Return the parameters of `chat' for asking TEXT in this buffer.
MANAGERS are the contexts to send, or nil for those of the conversation.  MORE
are further keywords and values.  Leave out what the server does not know."
  (let* ((settings contexture-conversation--settings)
         (managing
          ;; The choices in the header line, if there are any.  A template
          ;; that TEXT names is left to the server.
          (cond ((or (not (plist-member settings :manage))
                     (string-match-p contexture-conversation--own-template text))
                 nil)
                ((plist-get settings :manage)
                 `(:manage t ,@(contexture--plist
                                :template (plist-get settings :template))))
                (t '(:manage nil))))
         (params (append
                  (contexture--plist :session (contexture-conversation--session-id)
                                     :content text :managers managers
                                     :restore (contexture-count--restored
                                               (plist-get contexture-conversation--session
                                                          :session)))
                  (contexture-conversation--model-params) managing more)))
    (cl-loop for (key value) on params by #'cddr
             unless (memq key contexture-conversation--unknown)
             nconc (list key value))))

(defun contexture-conversation--count-params ()
  "Return the parameters for counting what this buffer would send now.
A slash command at the prompt does not count, since it is not sent."
  (let ((text (contexture--trim (contexture-conversation--text))))
    (append (contexture--plist :session (contexture-conversation--session-id)
                               :content (unless (or (string-empty-p text)
                                                    (string-prefix-p "/" text))
                                          text)
                               :managers (contexture-conversation--draft-mentions)
                               :restore (contexture-count--restored
                                         (plist-get contexture-conversation--session
                                                    :session)))
            (contexture-conversation--model-params))))


(defun contexture-conversation--refused (turn problem)
  "End TURN because of PROBLEM, an error of `chat'.
If the server does not know a parameter, ask again without it instead."
  (let ((param (plist-get (plist-get problem :data) :param)))
    (if (not (and (eql (plist-get problem :code) -32602)
                  (memq turn contexture-conversation--turns)
                  (memq param '(:request-key :model :provider :template :manage))
                  (not (memq param contexture-conversation--unknown))))
        (contexture-conversation--failed turn problem)
      (push param contexture-conversation--unknown)
      (unless (or (memq param '(:request-key :template))
                  (and (eq param :manage)
                       (not (plist-get contexture-conversation--settings :manage))))
        (contexture-conversation--note
         (format "This server does not know the parameter %s, so the question is sent without it."
                 (if (eq param :manage) "template" (contexture--name param)))))
      (contexture-conversation--chat turn))))

(defvar contexture-conversation--running nil
  "The slash command that is running, as (BUFFER . TEXT), or nil.
It is also bound while the results of the command's calls are handled, so
that TEXT can go back to the prompt of BUFFER if a call fails.")

(defun contexture-conversation--request (method params success &optional failure)
  "Call METHOD with PARAMS for this buffer; return the call's id.
SUCCESS is called with the result or FAILURE with the error, both in this
buffer, if it is still live.  FAILURE shows the error by default.  If the
call cannot even be made, call FAILURE at once and return nil."
  (let* ((buffer (current-buffer))
         (running contexture-conversation--running)
         (failure (or failure #'contexture-conversation--show-problem))
         (inside (lambda (function argument)
                   (contexture--with-live-buffer buffer
                     (let ((contexture-conversation--running running))
                       (funcall function argument))))))
    (condition-case problem
        (contexture-request-async method params
                                  :success (apply-partially inside success)
                                  :error (apply-partially inside failure))
      ((user-error contexture-error)
       (funcall failure (list :message (contexture--problem-text problem)))
       nil))))

(defun contexture-conversation--note-error (text &optional advice)
  "Draw TEXT, what an error says, in one line, and ADVICE below it.
If TEXT is longer, the line ends in dots, and unfolds to the whole text."
  (let* ((whole (concat "Error: " text))
         (line (contexture-conversation--one-line whole (- (contexture-conversation--width) 8))))
    (if (equal line whole) (contexture-conversation--note whole 'contexture-conversation-error)
      (contexture-conversation--draw-fold line text 'face 'contexture-conversation-error))
    (when advice (contexture-conversation--note advice 'contexture-conversation-error))))

(defun contexture-conversation--show-problem (problem)
  "Show PROBLEM, the error of a call, at the end of the conversation.
If a slash command made the call, put that back at the prompt."
  (contexture-conversation--note-error (contexture--error-text problem))
  (when (eq (car contexture-conversation--running) (current-buffer))
    (contexture-conversation--give-back (cdr contexture-conversation--running))))

;;;; The end

(defun contexture-conversation--answered (turn result)
  "End TURN, whose `chat' returned RESULT, once the whole answer is drawn."
  (let ((content (or (plist-get result :content) ""))
        (squeeze (lambda (text)
                   (contexture--edited
                    text (lambda ()
                           (while (not (eobp))
                             (skip-chars-forward "^ \t\n")
                             (delete-region (point) (progn (skip-chars-forward " \t\n")
                                                           (point)))))))))
    (unless (contexture-conversation--when-drawn turn #'contexture-conversation--answered result)
      (contexture-conversation--begin-answer turn)
      (if (or (equal content (contexture-conversation--last-part turn))
              (and (contexture-conversation--turn-earlier turn)
                   (equal (funcall squeeze content)
                          (funcall squeeze (contexture-conversation--so-far turn)))))
          (contexture-conversation--finish turn result content)
        (when-let* ((state (contexture-conversation--turn-state turn)))
          (contexture-conversation--changing
            (delete-region (contexture-conversation--turn-start turn)
                           contexture-conversation--tail)))
        (setf (contexture-conversation--turn-state turn) nil
              (contexture-conversation--turn-pieces turn) nil
              (contexture-conversation--turn-pending turn) (list (cons :text content)))
        (contexture-conversation--answered turn result)))))

(defun contexture-conversation--finish (turn result content)
  "End TURN, whose `chat' returned RESULT; CONTENT, the answer, is drawn."
  (contexture-conversation--end-turn turn)
  (let ((session (plist-get contexture-conversation--session :session)))
    ;; What was wanted back was there for this question.
    (contexture-count--restore
     session (contexture-count--restored session) nil))
  (setf (contexture-conversation--message-id (contexture-conversation--turn-question turn))
        (plist-get result :question))
  (contexture-conversation--note-length (plist-get result :id))
  (let ((answer (contexture-conversation--turn-answer turn)))
    (setf (contexture-conversation--message-id answer) (plist-get result :id)
          (contexture-conversation--message-text answer) content
          (contexture-conversation--message-origin answer)
          (contexture-conversation--message-origin (contexture-conversation--turn-question turn)))
    (when-let* ((model (plist-get result :model)))
      (setq contexture-conversation--answered-by model)
      (contexture-conversation--retitle answer model))
    (contexture-conversation--add-results answer (plist-get result :tool-calls)))
  (let ((text (contexture-conversation--result-text result)))
    (when text (contexture-conversation--note text))
    (contexture-conversation--keep-usage (plist-get result :id) (plist-get result :model) text))
  (when-let* ((text (contexture-conversation--management-text result)))
    (contexture-conversation--note text))
  (contexture-conversation--fetch-stats t)
  (contexture-conversation--keep-draft)
  (contexture-conversation--tell-watch turn 'done content)
  (run-hooks 'contexture-conversation-answered-hook))

(defun contexture-conversation--management-text (result)
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
       (concat (format "No notes with %s yet: the history%s is below its threshold"
                       template
                       (let ((tokens (plist-get management :tokens-before)))
                         (if tokens (format ", %s," (contexture--count tokens "token"))
                           "")))))
      ("disabled" (format "No notes: %s"
                          (or (plist-get management :reason)
                              (format "the kind %s never takes notes" template))))
      ("failed" (contexture-conversation--failed-managing-text management)))))

(defun contexture-conversation--failed-managing-text (management)
  "Return a phrase for notes that could not be taken, from MANAGEMENT.
That is a plist in the result of `chat'."
  (concat "No notes were taken, so the whole history was sent: "
          (let ((step (plist-get management :step)))
            (if step (format "%s: " (contexture--name step)) ""))
          (or (plist-get management :reason) "no reason was given")
          (let ((template (plist-get management :template)))
            (if template (format " (notes of the kind %s)" template) ""))))

(defun contexture-conversation--request-stats (success &optional failure)
  "Ask the server how full the model's window is.
SUCCESS is called with the result of `session-report'; for FAILURE, see
`contexture-conversation--request'."
  (contexture-conversation--request
   'session-report (contexture--plist
                    :session (contexture-conversation--session-id)
                    :model (plist-get (contexture-conversation--model-params) :model))
   success failure))

(defun contexture-conversation--fetch-stats (&optional after-turn)
  "Ask how full the model's window is, and redraw the header line.
AFTER-TURN is non-nil after a turn of this buffer: until the server has
answered, notifications about new messages may be about that turn."
  (when after-turn (cl-incf contexture-conversation--asking))
  (contexture-conversation--count)
  (contexture-conversation--request-stats
   (lambda (stats)
     (when after-turn (cl-decf contexture-conversation--asking))
     (setq contexture-conversation--stats stats
           contexture-conversation--log-length (max contexture-conversation--log-length
                                                    (or (plist-get stats :log) 0)))
     (contexture-conversation--draw-header))
   (lambda (_) (when after-turn (cl-decf contexture-conversation--asking)))))

(defun contexture-conversation--count ()
  "Count the tokens that this buffer would send, now and after each change."
  (when-let* ((id (plist-get contexture-conversation--session :id)))
    (contexture-count--follow id (current-buffer) #'contexture-conversation--draw-header)
    (contexture-count--changed id)))

(defun contexture-conversation--so-far (turn)
  "Return the text of TURN's answer that is drawn so far, in all its parts."
  (string-join (delete "" (reverse (cons (contexture-conversation--last-part turn)
                                         (contexture-conversation--turn-earlier turn))))
               "\n\n"))

(defun contexture-conversation--end-turn (turn)
  "Record that TURN has ended, and show its remarks."
  (setq contexture-conversation--turns (delq turn contexture-conversation--turns))
  (unless contexture-conversation--turns
    (remove-hook 'contexture-notification-functions #'contexture-conversation--progress)
    (remove-hook 'contexture-connected-hook #'contexture-conversation--asked-again))
  (when-let* ((timer (contexture-conversation--turn-timer turn)))
    (cancel-timer timer)
    (setf (contexture-conversation--turn-timer turn) nil))
  (setq contexture-conversation--turn nil)
  (contexture-conversation--drop-mentions (contexture-conversation--turn-mentioned turn))
  (contexture-conversation--drop-approvals)
  (contexture-conversation--end-part turn)
  (mapc #'contexture-conversation--note (reverse (contexture-conversation--turn-notes turn)))
  (contexture-conversation--draw-header)
  (run-hooks 'contexture-conversation-turn-ended-hook))

(defun contexture-conversation--cost-text (cost)
  "Return COST as text with four decimals, or with two digits if below 0.001."
  (if (or (zerop cost) (>= cost 0.001)) (format "%.4f" cost)
    (replace-regexp-in-string
     "\\.?0+\\'" "" (format (format "%%.%df" (min 12 (1+ (- (floor (log cost 10)))))) cost))))

(defun contexture-conversation--result-text (result)
  "Return tokens, cost and ending of an answer as a phrase, or nil if unknown.
RESULT is that of `chat'."
  (let* ((usage (plist-get result :usage))
         (cached (plist-get usage :cached))
         (cost (plist-get result :cost))
         (known (delq nil (list (and (plist-get usage :input) (plist-get usage :output)
                                     (format "%d tokens in%s, %d out" (plist-get usage :input)
                                             (if (and cached (> cached 0))
                                                 (format " (%d cached)" cached)
                                               "")
                                             (plist-get usage :output)))
                                (and cost (concat "cost $"
                                                  (contexture-conversation--cost-text cost)))
                                (plist-get result :ending)))))
    (and known (string-join known ", "))))

(defconst contexture-conversation--cancelling "Cancelling..."
  "Message shown until the server has stopped an answer.")

(defun contexture-conversation--failed (turn problem)
  "End TURN, whose answer failed or was cancelled because of PROBLEM.
A question without any answer goes back to the prompt."
  (when (and (memq turn contexture-conversation--turns)
             (not (contexture-conversation--when-drawn turn #'contexture-conversation--failed problem)))
    (let ((cancelled (eql (plist-get problem :code) -32800))
          (answer (contexture-conversation--turn-answer turn))
          (question (contexture-conversation--turn-question turn)))
      (contexture-conversation--end-turn turn)
      (when (and cancelled (equal (current-message) contexture-conversation--cancelling))
        (message nil))
      (if answer
          (setf (contexture-conversation--message-text answer) (contexture-conversation--so-far turn))
        (contexture-conversation--delete-from question)
        (contexture-conversation--withdraw question))
      (cond ((and cancelled answer)
             (contexture-conversation--note (substitute-command-keys
                                             "Cancelled; \\[contexture-conversation-retry] asks again.")))
            (cancelled
             (contexture-conversation--note "Cancelled; your question is back at the prompt."))
            (t (contexture-conversation--note-problem problem)))
      (unless (or (and cancelled answer) (contexture-conversation--watcher turn))
        (contexture-conversation--give-back (contexture-conversation--turn-text turn)))
      (contexture-conversation--fetch-stats t)
      (contexture-conversation--keep-draft)
      (contexture-conversation--tell-watch turn 'failed))))

(defconst contexture-conversation--no-model
  "No model is set up yet: use M-x contexture-configure-provider, or add a [[providers]] \
table to the server's configuration file. Everything else works without one."
  "Remark shown while no model is set up.")

(defun contexture-conversation--note-problem (problem)
  "Show PROBLEM, for which a question was not answered, and what to do.
If no model is set up, show only the remark about that, and only once."
  (let* ((data (plist-get problem :data))
         (kind (plist-get data :kind)))
    (if (or (not (eq kind :unconfigured)) (plist-get data :provider))
        (contexture-conversation--note-error
         (contexture--error-text problem)
         (contexture-conversation--advice kind (plist-get problem :code)))
      (contexture-conversation--forget-no-model)
      (contexture-conversation--note
       (concat contexture-conversation--no-model " Then, " (contexture-conversation--advice nil nil))
       'contexture-conversation-error 'contexture-no-model t))))

(defun contexture-conversation--advice (kind code)
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

(defun contexture-conversation--unanswered-text ()
  "Return the text to save: the question of which nothing came, and the draft."
  (let ((question (cond ((null contexture-conversation--turn) (cdr contexture-conversation--preparing))
                        ((not (or (contexture-conversation--turn-answer contexture-conversation--turn)
                                  (contexture-conversation--turn-pending contexture-conversation--turn)))
                         (contexture-conversation--turn-text contexture-conversation--turn)))))
    (string-join (cl-remove-if #'string-blank-p
                               (list (or question "") (contexture-conversation--text)))
                 "\n\n")))

;;;; Cancelling

(defun contexture-conversation-cancel ()
  "Stop the answer that is coming in, and keep what has come.
Use it again to give up on a server that does not answer.  While you are
changing an earlier question, leave that question as it was instead."
  (interactive)
  (let ((turn contexture-conversation--turn))
    (cond ((bound-and-true-p contexture-conversation--editing)
           (setq contexture-conversation--editing nil)
           (contexture-conversation--set-text "")
           (message "The question stays as it was"))
          (contexture-conversation--preparing
           (contexture-conversation--give-back (cdr contexture-conversation--preparing))
           (setq contexture-conversation--preparing nil))
          ((null turn) (user-error "Nothing is being answered"))
          ((null (contexture-conversation--turn-id turn)) ; before the call is made
           (if (contexture-conversation--turn-asked turn)
               (contexture-conversation--failed turn '(:code -32800 :message "cancelled"))
             (setf (contexture-conversation--turn-asked turn) t)))
          ((and (not (contexture-conversation--turn-asked turn))
                (jsonrpc-running-p (contexture-conversation--turn-connection turn)))
           (setf (contexture-conversation--turn-asked turn) t)
           (contexture-conversation--send-cancel turn)
           (message contexture-conversation--cancelling))
          (t (contexture--cancel (contexture-conversation--turn-connection turn)
                                 (contexture-conversation--turn-id turn))))))

(defun contexture-conversation--send-cancel (turn)
  "Ask the server to stop answering TURN."
  (jsonrpc-notify (contexture-conversation--turn-connection turn) 'cancel
                  (list :id (contexture-conversation--turn-id turn))))

;;; Ask again, change a question, branch

;; Asking the last question again, changing an earlier one, and branching
;; from an earlier turn into a new conversation.  All three go back to the
;; checkpoint that was taken before a question.  Later messages are taken
;; back; they stay only in the log.
;;
;; A checkpoint also has the items of the context.  You may ask again
;; because you have just added what was missing, so these commands keep the
;; items as they are now.

(defvar-local contexture-conversation--editing nil
  "Message of the question that the user is changing at the prompt, or nil.")

(defvar-local contexture-conversation--unanswered nil
  "Text of the last question that went back to the prompt, or nil.")

;;;; Commands

(defun contexture-conversation-retry ()
  "Ask the last question again, in place of that question and its answer."
  (interactive)
  (contexture-conversation--check-idle)
  (let ((question (contexture-conversation--last :user))
        (text (contexture-conversation--text)))
    (cond ((and (not (string-blank-p text)) contexture-conversation--unanswered
                (equal (contexture--trim text) contexture-conversation--unanswered))
           (contexture-conversation--send-text (contexture--trim text)))
          ((null question) (user-error "You have asked nothing yet"))
          (t (contexture-conversation--ask-instead
              question (contexture-conversation--message-text question))))))

(defun contexture-conversation-edit ()
  "Change the question at or before point, by default the last one.
It is copied to the prompt.  \\<contexture-conversation-mode-map>\\[contexture-conversation-send] \
there sends it in place of the old
question and all that followed; \\[contexture-conversation-cancel] leaves everything \
as it was."
  (interactive)
  (contexture-conversation--check-idle)
  (let ((question (let* ((message (or (contexture-conversation--message-at (point))
                                      (user-error "You have asked nothing yet")))
                         (older (memq message contexture-conversation--messages)))
                    (or (cl-find :user older :key #'contexture-conversation--message-role)
                        (user-error "There is no question at or before point")))))
    (unless (string-blank-p (contexture-conversation--text))
      (contexture-conversation--remember (contexture-conversation--text)))
    (setq contexture-conversation--editing question)
    (contexture-conversation--set-text (contexture-conversation--message-text question))
    (message (substitute-command-keys
              "\\[contexture-conversation-send] replaces the question and what followed; \
\\[contexture-conversation-cancel] leaves them"))))

;;;###autoload
(defun contexture-conversation-branch (&optional name)
  "Start a conversation that continues from the message at point, or the last.
If the message is a question, the new conversation ends before it, and has
the question at the prompt for you to change.  With a prefix argument, ask
for the NAME of the new conversation.  Its context has the items that the
context had at that time.  In a file that `contexture-conversation-export'
wrote, branch from the heading before point."
  (interactive
   (list (and current-prefix-arg (read-string "Name of the new conversation: " nil
                                              'contexture-conversation-names-history))))
  (if (derived-mode-p 'contexture-conversation-mode) (contexture-conversation--branch name)
    (contexture-saved--branch name)))

(defun contexture-conversation--branch (name)
  "Branch from the message at point, as `contexture-conversation-branch' does.
NAME is that of the new conversation, or nil."
  (contexture-conversation--check-idle)
  (let* ((message (or (contexture-conversation--message-at (point))
                      (user-error "There is no message yet")))
         (questionp (and (eq (contexture-conversation--message-role message) :user)
                         (< (point) contexture-conversation--tail)))
         (name (and name (not (string-blank-p name)) (contexture--trim name)))
         (next
          (if questionp message
            (cl-find
             :user (cdr (memq message (reverse contexture-conversation--messages)))
             :key #'contexture-conversation--message-role))))
    (if (null next)
        (contexture-conversation--fork name nil nil)
      (contexture-conversation--find-checkpoint
       next (lambda (checkpoint)
              (let ((draft (and questionp (contexture-conversation--message-text message))))
                (if checkpoint
                    (contexture-conversation--fork name checkpoint draft)
                  (contexture-conversation--copy name next draft))))))))

;;;; Checkpoints

(defun contexture-conversation--find-checkpoint (question then)
  "Call THEN with the id of the checkpoint taken just before QUESTION, or nil."
  (let ((number (contexture-conversation--number (contexture-conversation--message-id question))))
    (cond ((contexture-conversation--message-checkpoint question)
           (funcall then (contexture-conversation--message-checkpoint question)))
          ((null number) (funcall then nil))
          (t (contexture-conversation--request
              'list-operations (list :session (contexture-conversation--session-id) :checkpoints t)
              (lambda (checkpoints)
                (funcall then
                         (plist-get
                          (cl-find (1- number) checkpoints
                                   :key (lambda (it) (plist-get it :position)))
                          :checkpoint)))
              (lambda (_) (funcall then nil)))))))

(defun contexture-conversation--go-back (checkpoint then failed)
  "Go back to CHECKPOINT, but keep the items of the context as they are.
Then call THEN without arguments, or FAILED with the error."
  (let ((look (list :manager (plist-get contexture-conversation--session :manager)
                    :brief t))
        (ids (lambda (items) (mapcar (lambda (it) (plist-get it :id)) items))))
    (contexture-conversation--request
     'list-items look
     (lambda (before)
       (contexture-conversation--roll-back
        checkpoint
        (lambda (_)
          (contexture-conversation--request
           'list-items look
           (lambda (after)
             (if (equal (funcall ids before) (funcall ids after))
                 (funcall then)
               (contexture-conversation--request 'undo (list :manager (plist-get look :manager))
                                                 (lambda (_) (funcall then)) failed)))
           failed))
        failed))
     failed)))

(defun contexture-conversation--roll-back (checkpoint then failed)
  "Roll this conversation back to CHECKPOINT, including its context's items.
Call THEN with the result, or FAILED with the error."
  (cl-incf contexture-conversation--own-rollbacks)
  (contexture-conversation--request
   'rollback (list :session (contexture-conversation--session-id) :checkpoint checkpoint
                   :request-key (contexture--make-request-key))
   then
   (lambda (problem)
     (setq contexture-conversation--own-rollbacks (max 0 (1- contexture-conversation--own-rollbacks)))
     (funcall failed problem))))

(defun contexture-conversation--ask-instead (question text)
  "Ask TEXT in place of QUESTION and all that followed.
If there is no checkpoint before QUESTION, ask TEXT at the end."
  (when (equal (contexture--trim (contexture-conversation--text)) text)
    (contexture-conversation--set-text ""))
  (let* ((mine (setq contexture-conversation--preparing (cons 'back text)))
         (ask (lambda ()
                (when (eq mine contexture-conversation--preparing)
                  (setq contexture-conversation--preparing nil)
                  (contexture-conversation--ask
                   text (contexture-conversation--message-origin question)))))
         (failed (lambda (problem)
                   (when (eq mine contexture-conversation--preparing)
                     (setq contexture-conversation--preparing nil)
                     (contexture-conversation--show-problem problem)
                     (contexture-conversation--give-back text)))))
    (contexture-conversation--find-checkpoint
     question
     (lambda (checkpoint)
       (if checkpoint
           (contexture-conversation--go-back
            checkpoint
            (lambda ()
              (when (eq mine contexture-conversation--preparing)
                (contexture-conversation--delete-from question))
              (funcall ask))
            failed)
         (contexture-conversation--note "Where that question began was not noted, \
so the question and its answer stay in the conversation.")
         (funcall ask))))))

(defun contexture-conversation--withdraw (question)
  "Roll back QUESTION, which got no answer, on the server.
It goes back to the prompt, and would be in the conversation twice."
  (setq contexture-conversation--unanswered (contexture-conversation--message-text question))
  (when-let* ((checkpoint (contexture-conversation--message-checkpoint question))
              ((contexture-running-p)))
    (contexture-conversation--request
     'get-messages (list :session (contexture-conversation--session-id) :limit 1)
     (lambda (messages)
       (let ((last (car messages)))
         (when (and (eq (plist-get last :role) :user)
                    (equal (plist-get last :content)
                           (contexture-conversation--message-text question))
                    (not (contexture-conversation--busy-p)))
           (contexture-conversation--go-back checkpoint #'ignore #'ignore))))
     #'ignore)))

;;;; New conversations

(defun contexture-conversation--fork (name checkpoint draft)
  "Open a conversation called NAME that continues from CHECKPOINT.
Put DRAFT at its prompt.  NAME nil means that the server chooses a name,
CHECKPOINT nil the end of this conversation, and DRAFT nil no text."
  (contexture-conversation--request
   'open-session
   (contexture--plist :fork-of (contexture-conversation--session-id)
                      :checkpoint checkpoint :name name
                      :request-key (contexture--make-request-key))
   (apply-partially #'contexture-conversation--show-branch contexture-conversation--settings draft)))

(defun contexture-conversation--show-branch (settings draft session)
  "Show SESSION, a new conversation, with SETTINGS, and DRAFT at the prompt.
SESSION is the server's entry; DRAFT may be nil."
  (let ((buffer (contexture-conversation--open session)))
    (with-current-buffer buffer
      (setq contexture-conversation--settings (copy-sequence settings))
      (when draft (contexture-conversation--set-text draft))
      (contexture-conversation--draw-header))
    (pop-to-buffer buffer)
    (contexture--message "This is the new conversation %s, which continues from there"
             (plist-get session :session))))

(defun contexture-conversation--copy (name next draft)
  "Open a conversation called NAME with copies of the messages before NEXT.
This is for a NEXT without a checkpoint.  NAME and DRAFT are as for
`contexture-conversation--fork'."
  (let ((settings contexture-conversation--settings)
        (context contexture-context)
        (project (plist-get contexture-conversation--session :project))
        (before (contexture-conversation--number (contexture-conversation--message-id next))))
    (contexture-conversation--request
     'get-messages (list :session (contexture-conversation--session-id))
     (lambda (messages)
       (contexture-conversation--request
        'open-session
        (append (contexture--context-params (if (listp context) (butlast context) context))
                (contexture--plist :name name :project project
                                   :request-key (contexture--make-request-key)))
        (lambda (session)
          (contexture-conversation--request
           'add-message
           (list :session (plist-get session :id)
                 :request-key (contexture--make-request-key)
                 :messages (contexture-conversation--copies messages before))
           (lambda (_)
             (contexture-conversation--show-branch settings draft session)))))))))

(defun contexture-conversation--copies (messages before)
  "Return MESSAGES before the number BEFORE, or all of them if that is nil.
They are in the form that `add-message' takes."
  (cl-loop for message in messages
           for number = (string-to-number (substring (plist-get message :id) 4))
           while (or (null before) (< number before))
           collect (apply #'contexture--plist
                          (cl-loop for key in '(:role :content :timestamp :phase :pinned
                                                      :tool-calls :tool-call-id)
                                   nconc (list key (plist-get message key))))))

(provide 'contexture-conversation-turn)
;;; contexture-conversation-turn.el ends here
