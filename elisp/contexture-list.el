;;; contexture-list.el --- See and arrange a context  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-list' shows the items of a buffer's context with their
;; tokens; there you sort, filter, move, edit and remove them.  Also here:
;; commands that act on items and whole contexts from anywhere, sets of
;; items, the count of tokens that all views share, and the preview of what
;; a model will see.

;;; Code:

(require 'cl-lib)
(require 'tabulated-list)
(require 'contexture-agents)
(require 'mule-util)
(eval-when-compile (require 'subr-x))

(declare-function contexture-conversation--count-params "contexture-conversation-turn" ())
(defvar contexture-conversation--session)
(defvar contexture-conversations--topics)
(defvar contexture-list--conversation)
(defvar view-inhibit-help-message)

;;; What would be sent now, counted once

;; The number of tokens that a conversation would send now, and how many
;; its model takes.  Sent are the system text, the layers, the history and
;; what is being typed.  The server counts, and all places show that count: the header and the mode line of
;; the conversation, the list, the dashboard, the mode line of
;; `contexture-conversation-mode-line-mode', and the dry run.
;;
;; A place follows a conversation with `contexture-count--follow'.  Emacs never
;; waits for a count: after a change or a pause in typing it asks, and
;; until the answer is there, the text says that the count is an old one.

(defconst contexture-count--typing-pause 0.4
  "Number of seconds without typing after which the server counts.")

(defconst contexture-count--pause 0.05
  "Number of seconds after any other change until the server counts.")

(cl-defstruct contexture-count--entry
  "The count of what a conversation would send, and how current it is."
  count    ; last answer of `count-window'
  problem  ; error of the last call, or nil
  stale    ; non-nil if something changed since the last answer
  asking   ; non-nil during a call; `again' if something changed meanwhile
  timer    ; timer for the next call
  due      ; time of the next call
  places)  ; alist from the places that show it to functions

(defvar contexture-count--entries (make-hash-table :test #'equal)
  "Hash table from the ids of conversations to their `contexture-count--entry'.")

;;;; The text

(defun contexture-count--phrase (count)
  "Return a phrase for COUNT: tokens, messages, and a limit that is assumed.
COUNT is an answer of `count-window', of a dry run, or the report of a window."
  (let ((tokens (or (plist-get count :tokens) (plist-get count :tokens-after) 0))
        (most (plist-get count :max-tokens))
        (sent (plist-get count :messages)))
    (concat
     (format "%s of %s tokens (%d %%)" (contexture--number tokens)
             (contexture--number most) (/ (* 100 tokens) (max 1 most)))
     (if (eql (plist-get sent :of) 0) ", no messages"
       (format ", %s of %s sent" (contexture--number (plist-get sent :sent))
               (contexture--count (plist-get sent :of) "message")))
     (if (eql (plist-get sent :shortened) 0) ""
       (format ", %s shortened" (contexture--number (plist-get sent :shortened))))
     (if (eq (plist-get count :limit-from) :default)
         ", limit assumed"
       ""))))

(defun contexture-count--compaction (id)
  "Return words for the compaction that the next question of ID makes, or nil.
They say how much is left out, and what a prompt cache can no longer use."
  (when-let* ((count (contexture-count--of id))
              (sent (plist-get count :messages))
              (stable (plist-get count :stable))
              (tokens (plist-get count :tokens))
              (cached (plist-get stable :tokens)))
    ;; A window that only grows begins like the one before.
    (when (and (< (plist-get sent :sent) (plist-get sent :of))
               (plist-get stable :first-difference)
               (< cached (/ tokens 2)))
      (format "compacts next: %s not whole, %s of %s tokens read anew"
              (contexture--count (- (plist-get sent :of) (plist-get sent :sent)) "message")
              (contexture--number (- tokens cached)) (contexture--number tokens)))))

(defun contexture-count--text (id)
  "Return a phrase for the count of the conversation ID, or \"\" before the first."
  (let* ((entry (gethash id contexture-count--entries))
         (count (contexture-count--of id))
         (problem (and entry (contexture-count--entry-problem entry))))
    (cond (problem (format "not counted: %s" (plist-get problem :message)))
          ((null count) "")
          ((not (contexture-count--entry-stale entry))
           (contexture-count--phrase count))
          (t (concat (contexture-count--phrase count)
                     (if (contexture-running-p) ", counting..."
                       ", before the server went away"))))))

(defun contexture-count--short (id)
  "Return the count of the conversation ID for a mode line, or nil if unknown.
A tilde says that the count is not the latest."
  (when-let* ((entry (gethash id contexture-count--entries))
              (count (contexture-count--entry-count entry)))
    (format "%s%s/%s" (if (contexture-count--entry-stale entry) "~" "")
            (contexture--number (plist-get count :tokens))
            (contexture--number (plist-get count :max-tokens)))))

(defun contexture-count--of (id)
  "Return the last count of the conversation ID, or nil."
  (when-let* ((entry (gethash id contexture-count--entries)))
    (contexture-count--entry-count entry)))

;;;; Messages to bring back

(defvar contexture-count--restored nil
  "Alist from the names of conversations to ids of messages to bring back.
The next question of a conversation takes them along.")

(defun contexture-count--restored (session)
  "Return the ids of the messages that the next question of SESSION brings back."
  (cdr (assoc session contexture-count--restored)))

(defun contexture-count--restore (session ids back)
  "Have the next question of SESSION bring back the messages IDS, or not.
BACK is nil if it no longer should."
  (let ((others (cl-set-difference (contexture-count--restored session) ids
                                   :test #'equal)))
    (setf (alist-get session contexture-count--restored nil t #'equal)
          (if back (append others ids) others))
    (contexture-count--all-changed)))

;;;; Following conversations

(defun contexture-count--follow (id place redraw)
  "Keep the count of the conversation ID up to date for PLACE.
PLACE is a buffer or a symbol; it follows one conversation at a time.
REDRAW is called without arguments, in that buffer, whenever the text
changes."
  (unless (assq place (when-let* ((entry (gethash id contexture-count--entries)))
                        (contexture-count--entry-places entry)))
    (contexture-count--unfollow place)
    (when (= 0 (hash-table-count contexture-count--entries))
      ;; That file loads this one, through the list.
      (require 'contexture-conversations)
      (contexture-watch #'contexture-count--told contexture-conversations--topics)
      (add-hook 'contexture-connected-hook #'contexture-count--all-changed)
      (add-hook 'contexture-disconnected-hook #'contexture-count--all-changed))
    (let ((entry (or (gethash id contexture-count--entries)
                     (puthash id (make-contexture-count--entry)
                              contexture-count--entries))))
      (push (cons place redraw) (contexture-count--entry-places entry))
      (contexture-count--changed id))))

(defun contexture-count--unfollow (place)
  "Stop counting for PLACE."
  (maphash
   (lambda (id entry)
     (when (assq place (contexture-count--entry-places entry))
       (setf (alist-get place (contexture-count--entry-places entry) nil t) nil)
       (unless (contexture-count--entry-places entry)
         (when (contexture-count--entry-timer entry)
           (cancel-timer (contexture-count--entry-timer entry))
           (setf (contexture-count--entry-timer entry) nil))
         (remhash id contexture-count--entries))))
   contexture-count--entries)
  (when (= 0 (hash-table-count contexture-count--entries))
    (contexture-unwatch #'contexture-count--told)
    (remove-hook 'contexture-connected-hook #'contexture-count--all-changed)
    (remove-hook 'contexture-disconnected-hook #'contexture-count--all-changed)))

(defun contexture-count--told (method params)
  "Count again what a notification of METHOD with PARAMS concerns."
  (cond ((memq method '(context-changed providers-changed))
         (contexture-count--all-changed))
        ((memq method contexture-conversations--topics)
         (contexture-count--changed (plist-get params :session-id)))))

(defun contexture-count--all-changed (&rest _)
  "Count again for every conversation that some place shows."
  (dolist (id (hash-table-keys contexture-count--entries))
    (contexture-count--changed id)))

;;;; Asking

(defun contexture-count--changed (id &optional typing)
  "Note a change of what the conversation ID would send.
The server counts again soon, or after a pause if TYPING."
  (when-let* ((entry (gethash id contexture-count--entries)))
    (let ((pause (if typing contexture-count--typing-pause contexture-count--pause))
          (was-stale (contexture-count--entry-stale entry)))
      (setf (contexture-count--entry-stale entry) t
            (contexture-count--entry-due entry) (+ (float-time) pause))
      (unless (contexture-count--entry-timer entry)
        (contexture-count--start id entry pause))
      (unless was-stale (contexture-count--redraw entry)))))

(defun contexture-count--start (id entry pause)
  "Ask for the count of the conversation ID, with ENTRY, after PAUSE seconds."
  (setf (contexture-count--entry-timer entry)
        (run-at-time pause nil #'contexture-count--due id entry)))

(defun contexture-count--due (id entry)
  "Ask for the count of the conversation ID, with ENTRY, unless typing goes on."
  (setf (contexture-count--entry-timer entry) nil)
  (let ((left (- (contexture-count--entry-due entry) (float-time))))
    (cond ((> left 0.01) (contexture-count--start id entry left))
          ((contexture-count--entry-asking entry)
           (setf (contexture-count--entry-asking entry) 'again))
          ((contexture-running-p) (contexture-count--ask id entry)))))

(defun contexture-count--ask (id entry)
  "Ask the server for the count of the conversation ID, with ENTRY."
  (setf (contexture-count--entry-asking entry) t)
  (contexture-request-async
   'count-window
   (or (cl-loop for buffer in (buffer-list)
                when (with-current-buffer buffer
                       (and (eq major-mode 'contexture-conversation-mode)
                            (equal id (plist-get (bound-and-true-p
                                                  contexture-conversation--session)
                                                 :id))))
                return (with-current-buffer buffer (contexture-conversation--count-params)))
       (list :session id))
   :success (lambda (count) (contexture-count--answered id entry count nil))
   :error (lambda (problem) (contexture-count--answered id entry nil problem))))

(defun contexture-count--conversation-of (context)
  "Return the conversation that sends CONTEXT, as (ID . NAME), or nil.
CONTEXT is a manager or layers.  Of several conversations, it is the one
whose buffer was shown last."
  (cl-some
   (lambda (buffer)
     (when (eq (buffer-local-value 'major-mode buffer) 'contexture-conversation-mode)
       (let ((session (buffer-local-value 'contexture-conversation--session buffer))
             (managers (ensure-list (buffer-local-value 'contexture-context buffer))))
         (and (plist-get session :id)
              (cl-subsetp (ensure-list context) managers :test #'equal)
              (cons (plist-get session :id) (plist-get session :session))))))
   (buffer-list)))

(defun contexture-count--answered (id entry count problem)
  "Show COUNT or PROBLEM, the answer for the conversation ID with ENTRY."
  (let ((again (eq (contexture-count--entry-asking entry) 'again)))
    (setf (contexture-count--entry-asking entry) nil
          (contexture-count--entry-problem entry) problem)
    (when count (setf (contexture-count--entry-count entry) count))
    (when (contexture-count--entry-places entry)
      (if again
          (contexture-count--ask id entry)
        (unless (contexture-count--entry-timer entry)
          (setf (contexture-count--entry-stale entry) nil)))
      (contexture-count--redraw entry))))

(defun contexture-count--redraw (entry)
  "Redraw the places that show ENTRY; forget those that are gone."
  (pcase-dolist (`(,place . ,redraw) (contexture-count--entry-places entry))
    (cond ((not (bufferp place)) (funcall redraw))
          ((buffer-live-p place) (with-current-buffer place (funcall redraw)))
          (t (contexture-count--unfollow place)))))

;;; The lines of a list of items

;; Computes the columns, the order and the filtering of the list from the
;; items alone; this file changes no buffer and calls no server.
;;
;; One call of `format', whose directives pad and cut by screen columns,
;; makes a line: a thousand lines take about ten milliseconds, a tenth of
;; what `tabulated-list-print' takes.

(defface contexture-list-pinned '((t :inherit font-lock-keyword-face))
  "Face of the mark of a pinned item."
  :group 'contexture)

(defface contexture-list-changed '((t :inherit warning))
  "Face of a changed item, whose source no longer has its text."
  :group 'contexture)

(defface contexture-list-gone '((t :inherit error))
  "Face of an item whose file is gone."
  :group 'contexture)

(defconst contexture-list--sent-width 12
  "Width of the column that shows which agent has an item.")

(defvar contexture-list--heading-map
  (let ((map (make-sparse-keymap)))
    (define-key map [mouse-1] 'contexture-list-sort)
    (define-key map [mouse-2] 'contexture-list-sort)
    (define-key map (kbd "RET") 'contexture-list-sort)
    (define-key map [follow-link] 'mouse-face)
    map)
  "Keymap of the column headings.")

;;;; Cells

(defun contexture-list--row (item now &optional sent)
  "Return the row that shows ITEM at the time NOW, in Unix seconds.
It is a list of the id and a vector with the text of each column.  SENT is
`contexture-agents--table', or nil if there is no column for that."
  (let* ((metadata (plist-get item :metadata))
         (state (contexture-list--state item))
         (face (pcase state
                 ("changed" 'contexture-list-changed)
                 ("gone" 'contexture-list-gone)))
         (source (contexture-list--source metadata)))
    (list (plist-get item :id)
          (vconcat
           (list (propertize (if (plist-get item :pinned) "*" "")
                             'face 'contexture-list-pinned)
                 (contexture-list--kind item)
                 (if face (propertize source 'face face) source)
                 (contexture-list--lines metadata)
                 (format "%s" (or (plist-get item :tokens) "?"))
                 (contexture-list--age
                  (- now (or (plist-get item :timestamp) now))))
           (and sent (list (contexture-list--sent-cell
                            (gethash (plist-get item :id) sent) now)))
           (list (contexture-list--state-cell item state face))))))

(defvar contexture-list--sent-cells (make-hash-table :test #'equal)
  "Hash table from (AGENT . AGE) to the cell that shows them.
A thousand cells would take as long as all the rest of their lines.")

(defun contexture-list--sent-cell (sent now)
  "Return the cell for SENT, a value in `contexture-agents--table' or nil.
NOW is the time, in Unix seconds."
  (pcase sent
    ('nil "")
    (`(next . "") (propertize "next" 'face 'contexture-list-pinned
                              'help-echo "Goes with the next prompt of an agent"))
    (`(next . ,agent)
     (propertize (concat "next " (contexture-agents--short agent))
                 'face 'contexture-list-pinned
                 'help-echo (contexture--help
                             (format "Goes with the next prompt of %s" agent))))
    (`(,agent . ,at)
     (let ((key (cons agent (if (> at 0) (contexture-list--age (- now at)) ""))))
       (or (gethash key contexture-list--sent-cells)
           (puthash key (contexture-list--make-sent-cell (car key) (cdr key))
                    contexture-list--sent-cells))))))

(defun contexture-list--make-sent-cell (agent age)
  "Return the cell for what AGENT was sent, AGE ago, both strings."
  (propertize (contexture--trim-right
               (concat (truncate-string-to-width
                        (contexture-agents--short agent)
                        (- contexture-list--sent-width 1 (length age)))
                       " " age))
              'help-echo (contexture--help
                          (format "%s was sent this; what changed since goes with its next prompt"
                                  agent))))

(defun contexture-list--state-cell (item state face)
  "Return the cell for STATE of ITEM, in FACE, which may be nil.
Text that may differ from its source is shown with its date."
  (if (not (or face (contexture-list--dated-p item)))
      state
    (let ((as-of (plist-get item :as-of))
          (reason (if (contexture--conflict-p item)
                      "Its file changed on disk under unsaved edits; = compares them"
                    (plist-get (plist-get item :metadata) :stale))))
      (apply #'propertize state
             `(,@(and face (list 'face face))
               ,@(and reason (list 'help-echo (contexture--help reason)))
               ,@(and as-of (list 'display
                                  (concat state (format-time-string " %F" as-of)))))))))

(defun contexture-list--state (item)
  "Return the word for ITEM's state.
It is \"covered\" if another item contains it.  It is \"copy\" for a
text that does not follow its source, such as an error, whether or not
it names a file."
  (let ((state (contexture--item-state item)))
    (cond ((plist-get item :covered-by) "covered")
          ((not (equal state "current")) state)
          ((and (plist-get item :as-of) (not (plist-get item :live))) "copy")
          (t state))))

(defun contexture-list--copy-p (item)
  "Return non-nil if ITEM has the text of a buffer without a file, and its date."
  (let ((metadata (plist-get item :metadata)))
    (and (plist-get item :as-of)
         (plist-get metadata :buffer)
         (null (plist-get metadata :filename)))))

(defun contexture-list--has-source-p (item)
  "Return non-nil if ITEM has the text of a file or a buffer, which it can follow.
A buffer without a file must exist, and is followed as a whole."
  (let ((metadata (plist-get item :metadata)))
    (and (or (plist-get metadata :filename)
             (and (contexture-list--copy-p item)
                  (null (plist-get metadata :start-line))
                  (get-buffer (plist-get metadata :buffer))))
         (null (plist-get metadata :start-column)) ; a rectangle
         (memq (plist-get metadata :origin)
               '(nil :region :defun :symbol :file :buffer :tree)))))

(defun contexture-list--dated-p (item)
  "Return non-nil if the state of ITEM is shown with a date."
  (and (plist-get item :as-of)
       (or (contexture-list--copy-p item)
           (member (contexture-list--state item) '("changed" "gone" "copy" "remote")))))

(defun contexture-list--state-width (item)
  "Return how many columns the state of ITEM takes, with its date and a space."
  (+ 1 (length (contexture-list--state item))
     (if (contexture-list--dated-p item) (length " 2000-01-01") 0)))

(defun contexture-list--kind (item)
  "Return a phrase for ITEM's type and origin."
  (contexture--visible (string-join (contexture-list--kinds item) " ")))

(defun contexture-list--kinds (item)
  "Return a list of the names of ITEM's type and, if it says more, its origin."
  (let ((type (contexture--name (plist-get item :type)))
        (origin (contexture--name (plist-get (plist-get item :metadata) :origin))))
    (if (member origin (list "" type)) (list type) (list type origin))))

(defun contexture-list--source (metadata)
  "Return the source of an item with METADATA, on one line.
A symbol comes first, since a narrow column may cut the rest."
  (let* ((symbol (plist-get metadata :symbol))
         (place (contexture--place metadata))
         (text (if (and symbol (not (equal symbol place)))
                   (format "%s (%s)" symbol place)
                 place)))
    (contexture--visible text)))

(defun contexture-list--lines (metadata)
  "Return the lines in METADATA as text."
  (let ((start (plist-get metadata :start-line))
        (end (plist-get metadata :end-line)))
    (cond ((null start) "")
          ((or (null end) (eql start end)) (number-to-string start))
          (t (format "%d-%d" start end)))))

(defun contexture-list--age (seconds)
  "Return an age of SECONDS as a short text, such as \"5m\"."
  (cond ((< seconds 60) "now")
        ((< seconds 3600) (format "%dm" (/ seconds 60)))
        ((< seconds 86400) (format "%dh" (/ seconds 3600)))
        (t (format "%dd" (/ seconds 86400)))))

;;;; Columns

(defun contexture-list--format (width &optional states sent)
  "Return the columns for a window of WIDTH; the source gets what is left.
STATES is the width of the longest state; with SENT, there is a column
for what agents have.
Each column has room for its heading and an arrow; the column of types
has room for the longest type if possible.  If there is too little room
for the states, it is taken from the columns of types, lines and
sources, in this order."
  (let* ((states (max 7 (or states 0)))
         (left (- width states 24 (if sent (1+ contexture-list--sent-width) 0)))
         (types (if (< width 90) 13 17))
         (lack (max 0 (- (+ types 10 12) left)))
         (types (- types (min lack 4)))
         (lines (- 10 (min 3 (max 0 (- lack 4))))))
    (vconcat `(("" 1 nil)
               ("Type" ,types t)
               ("Source" ,(max 10 (- left types lines)) t)
               ("Lines" ,lines t)
               ("Tokens" 8 t :right-align t)
               ("Age" 5 t))
             (and sent `(("Sent" ,contexture-list--sent-width t)))
             `(("State" ,states t)))))

(defun contexture-list--template (columns)
  "Return the format string of a line with COLUMNS.
What is too long is cut, except in the columns of tokens and states."
  (concat "  "
          (cl-loop for (_ width _ . properties) across columns
                   for number from 1
                   concat (cond ((= number (length columns)) "%s")
                                ((plist-get properties :right-align)
                                 (format "%%%ds " width))
                                (t (format "%%-%d.%ds " width width))))
          "\n"))

(defun contexture-list--cut-source (source width)
  "Return SOURCE cut to WIDTH, keeping the end of a file's name, or a symbol."
  (let ((surplus (- (string-width source) width)))
    (cond ((<= surplus 0) source)
          ((or (not (string-search "/" source)) (string-suffix-p ")" source))
           (truncate-string-to-width source width nil nil t))
          (t (let ((dots (truncate-string-ellipsis)))
               (concat dots (truncate-string-to-width
                             source (string-width source)
                             (+ surplus (string-width dots)))))))))

(defun contexture-list--line (row columns template)
  "Return the line that shows ROW in COLUMNS, made with TEMPLATE.
It has the text properties that `tabulated-list-mode' needs."
  (pcase-let* ((`(,id ,cells) row)
               (width (cadr (aref columns 2)))
               (source (aref cells 2))
               (texts (append cells nil))
               (line (progn
                       (setf (nth 2 texts) (contexture-list--cut-source source width)
                             ;; A number that lacks digits would be another one.
                             (nth 3 texts) (truncate-string-to-width
                                            (nth 3 texts) (cadr (aref columns 3)) nil nil t))
                       (apply #'format template texts))))
    (add-text-properties 0 (length line)
                         (list 'tabulated-list-id id 'tabulated-list-entry cells)
                         line)
    (put-text-property 4 (1- (length line)) 'mouse-face 'highlight line)
    line))

(defun contexture-list--heading (columns sort-key)
  "Return the line of the headings of COLUMNS.
SORT-KEY is as in the variable `tabulated-list-sort-key'."
  (concat "  "
          (mapconcat (lambda (column)
                       (contexture-list--heading-cell column sort-key))
                     columns " ")
          "\n"))

(defun contexture-list--heading-cell (column sort-key)
  "Return the heading of COLUMN, marked if SORT-KEY names it."
  (pcase-let* ((`(,name ,width ,sortable . ,properties) column)
               (here (equal name (car sort-key)))
               (right (plist-get properties :right-align))
               (arrow (if (cdr sort-key) "v" "^"))
               (label (cond ((not here) name)
                            (right (concat arrow " " name))
                            (t (concat name " " arrow))))
               (padding (make-string (max 0 (- width (string-width label))) ?\s)))
    (when sortable
      (setq label (propertize label
                              'face (and here 'bold)
                              'help-echo "Sort by this column"
                              'mouse-face 'highlight
                              'contexture-list-column name
                              'keymap contexture-list--heading-map)))
    (if right (concat padding label) (concat label padding))))

;;;; Order

(defun contexture-list--sort (items sort-key)
  "Return ITEMS sorted by SORT-KEY, or in their own order if it is nil.
SORT-KEY is as in the variable `tabulated-list-sort-key'."
  (if (null sort-key)
      items
    (let ((key (contexture-list--sort-value (car sort-key)))
          (less (lambda (a b) (if (numberp a) (< a b) (string-lessp a b)))))
      (mapcar #'cdr (cl-stable-sort
                     (mapcar (lambda (item) (cons (funcall key item) item)) items)
                     (if (cdr sort-key) (lambda (a b) (funcall less b a)) less)
                     :key #'car)))))

(defun contexture-list--sort-value (column)
  "Return a function from an item to its sort key in COLUMN, a name."
  (pcase column
    ("Type" #'contexture-list--kind)
    ("Source" (lambda (item) (contexture-list--source (plist-get item :metadata))))
    ("Lines" (lambda (item)
               (or (plist-get (plist-get item :metadata) :start-line) 0)))
    ("Tokens" (lambda (item) (or (plist-get item :tokens) 0)))
    ("Age" (lambda (item) (- (or (plist-get item :timestamp) 0))))
    ("Sent" (lambda (item)
              (pcase (and contexture-agents--table
                          (gethash (plist-get item :id) contexture-agents--table))
                ('nil 1)
                (`(next . ,_) most-negative-fixnum)
                (`(,_ . ,at) (- at)))))
    ("State" #'contexture-list--state)
    (_ (contexture--user-error "There is no column %s" column))))

;;;; Filters

(defun contexture-list--passes-p (item filters)
  "Return non-nil if ITEM passes all FILTERS, an alist from kind to value."
  (cl-loop for (kind . value) in filters
           always (pcase kind
                    ('type (member value (contexture-list--kinds item)))
                    ('state (equal value (contexture-list--state item)))
                    ('name (contexture-list--matches-p
                            value (contexture-list--source
                                   (plist-get item :metadata))))
                    ('contents (contexture-list--matches-p
                                value (or (plist-get item :content) ""))))))

(defun contexture-list--matches-p (regexp text)
  "Return non-nil if REGEXP matches TEXT.
Case matters only if REGEXP has capital letters."
  (let ((case-fold-search (isearch-no-upper-case-p regexp t)))
    (string-match-p regexp text)))

;;;; The header line

(defun contexture-list--header (manager items capacity shown filters)
  "Return the header line for MANAGER with ITEMS, of at most CAPACITY.
SHOWN is the number of items that pass FILTERS."
  (contexture--header-line
   (concat (format "%s: %s%s, %s"
                   (if (and (listp manager)
                            (cdr (delete-dups (contexture--pluck :manager items))))
                       "Everything that is sent"
                     (contexture--capitalized (contexture--label manager)))
                   (contexture--count (length items) "item")
                   (if capacity (format " of at most %d" capacity) "")
                   (contexture--count (contexture--tokens-to-send items) "token"))
           (pcase contexture-list--conversation
             ('nil "")
             (`(,id . ,name)
              (let ((text (contexture-count--text id)))
                (if (equal text "") "" (format "; %s would send %s" name text)))))
           (when filters
             (propertize (format "; %d shown: %s" shown
                                 (mapconcat (pcase-lambda (`(,kind . ,value))
                                              (format "%s %s" kind value))
                                            (reverse filters) ", "))
                         'face 'bold)))))

;;; Draw a list of items

;; Draws the items of a list.  Only lines that changed are redrawn, so
;; marks, point and the windows stay in place, and a change of one item
;; among a thousand costs little.  This file knows neither the server nor
;; any command.

(defface contexture-list-marked '((t :inherit font-lock-constant-face))
  "Face of the mark of an item that the next command applies to."
  :group 'contexture)

(defface contexture-list-flagged '((t :inherit error))
  "Face of the flag of an item to be removed."
  :group 'contexture)

(defvar-local contexture-list--items nil
  "The items of the context as plists, in the order of the context.")

(defvar-local contexture-list--capacity nil
  "Capacity of the context in items, or nil if unknown.")

(defvar-local contexture-list--rows nil
  "Drawn rows from top to bottom: pairs of an item's id and its line.")

(defvar-local contexture-list--made nil
  "Cache of the rows of the items shown.
The car is what the rows depend on: the minute, the columns and what
agents have.  The cdr is a hash table from an item to its row and its
pair of id and line.")

(defvar-local contexture-list--width nil
  "Width of the window that the columns were computed for.")

(defvar-local contexture-list--sent nil
  "Table of what agents have, if the items have a column for it, or nil.
It is the value of `contexture-agents--table'.")

(defvar-local contexture-list--states nil
  "Width of the longest state, for which the columns have room.")

(defvar-local contexture-list--filters nil
  "Filters on the items shown, an alist from a kind to its value.")

(defvar-local contexture-list--tags nil
  "Hash table from an item's id to its mark, a character.")

(defvar-local contexture-list--loaded nil
  "Non-nil once the items have been fetched.")

(defvar-local contexture-list--conversation nil
  "Conversation that sends this context, as (ID . NAME), or nil.")

;;;; Drawing

(defun contexture-list--draw ()
  "Show the items, redrawing only what changed."
  (let ((entry (contexture-count--conversation-of contexture-context)))
    (setq contexture-list--conversation entry)
    (if entry
        (contexture-count--follow (car entry) (current-buffer)
                                  #'contexture-list--draw-header)
      (contexture-count--unfollow (current-buffer))))
  (let ((inhibit-read-only t)
        (items (contexture-list--shown-items)))
    (unless (zerop (hash-table-count contexture-list--tags))
      (let ((ids (contexture--pluck :id contexture-list--items)))
        (maphash (lambda (id _)
                   (unless (member id ids) (remhash id contexture-list--tags)))
                 contexture-list--tags)))
    (contexture-list--draw-header)
    (contexture-list--draw-heading)
    (contexture-list--draw-rows (contexture-list--make-rows items))
    (set-buffer-modified-p nil)))

(defun contexture-list--draw-header ()
  "Show the size of the context, and what its conversation would send."
  (setq header-line-format
        (if contexture-list--loaded
            (contexture-list--header contexture-context contexture-list--items
                                     contexture-list--capacity
                                     (length (contexture-list--shown-items))
                                     contexture-list--filters)
          (contexture--header-line
           (contexture--capitalized (contexture--label contexture-context))
           ": the server has not answered yet"))))

(defun contexture-list--shown-items ()
  "Return the items to show, in display order."
  (contexture-list--sort
   (cl-remove-if-not (lambda (item)
                       (contexture-list--passes-p item contexture-list--filters))
                     contexture-list--items)
   tabulated-list-sort-key))

(defun contexture-list--make-rows (items)
  "Return pairs of id and line for ITEMS, or one pair with a remark if none.
Items that were drawn in this minute keep their lines.  If the items have
managers, each section begins with a row of its own, whose id is nil."
  (let* ((now (truncate (float-time)))
         (key (list (/ now 60) tabulated-list-format contexture-list--sent))
         (known (if (equal key (car contexture-list--made))
                    (cdr contexture-list--made)
                  (make-hash-table :test #'eq)))
         (made (make-hash-table :test #'eq :size (length items)))
         (template (contexture-list--template tabulated-list-format)))
    (setq tabulated-list-entries
          (mapcar (lambda (item)
                    (car (puthash item
                                  (or (gethash item known)
                                      (contexture-list--make-row item now template))
                                  made)))
                  items)
          contexture-list--made (cons key made))
    (or (cl-loop with layer = nil
                 for item in items
                 for manager = (plist-get item :manager)
                 unless (or tabulated-list-sort-key (equal manager layer))
                 collect (contexture-list--section (setq layer manager) items)
                 collect (cdr (gethash item made)))
        (list (cons nil (contexture-list--remark))))))

(defun contexture-list--section (manager items)
  "Return the row of the heading of MANAGER's section, a pair of nil and a line.
It shows how many of ITEMS are in MANAGER, and their size."
  (let ((own (cl-remove-if-not (lambda (item)
                                 (equal (plist-get item :manager) manager))
                               items)))
    (cons nil
          (propertize
           (format "  %s (%s)\n"
                   (contexture--capitalized (contexture--label manager))
                   (contexture--size
                    (length own)
                    (contexture--tokens-to-send own)))
           'face 'bold))))

(defun contexture-list--make-row (item now template)
  "Return (ROW ID . LINE) for ITEM at the time NOW.
ROW is the value of `contexture-list--row', and LINE is made with TEMPLATE."
  (let ((row (contexture-list--row item now contexture-list--sent)))
    (cons row (cons (car row)
                    (contexture-list--line row tabulated-list-format template)))))

(defun contexture-list--remark ()
  "Return the line to show when there are no items."
  (concat "  "
          (cond ((not contexture-list--loaded) "")
                (contexture-list--items
                 (substitute-command-keys
                  "(no item passes the filters; \\[contexture-list-unfilter] \
removes them)"))
                (t (substitute-command-keys
                    "(no items yet; \\[contexture-add-dwim] in a buffer adds some)")))
          "\n"))

(defun contexture-list--draw-heading ()
  "Draw the column headings on the first line, if they changed."
  (let ((width (window-width (get-buffer-window nil t)))
        (states (cl-loop for item in contexture-list--items
                         maximize (contexture-list--state-width item)))
        (sent (and contexture-agents--table
                   (cl-some (lambda (item)
                              (gethash (plist-get item :id) contexture-agents--table))
                            contexture-list--items)
                   contexture-agents--table)))
    (unless (and (eql width contexture-list--width)
                 (eql states contexture-list--states)
                 (eq (null sent) (null contexture-list--sent)))
      (setq contexture-list--width width
            contexture-list--states states
            tabulated-list-format (contexture-list--format width states sent)))
    (setq contexture-list--sent sent))
  (let ((heading (contexture-list--heading tabulated-list-format
                                           tabulated-list-sort-key))
        (new (= (point-min) (point-max))))
    (save-excursion
      (goto-char (point-min))
      (unless (equal heading (buffer-substring-no-properties
                              (point) (line-beginning-position 2)))
        ;; Insert the new heading before deleting the old one, so that point
        ;; stays below both.
        (insert heading)
        (add-face-text-property (point-min) (point) 'tabulated-list-fake-header t)
        (delete-region (point) (line-beginning-position 2))))
    (when new
      (setq contexture-list--rows nil)
      (goto-char (point-max)))))

(defun contexture-list--draw-rows (rows)
  "Replace the lines below the heading with those of ROWS.
Unchanged lines at the beginning and the end are not touched, and each
window stays on its items."
  (let* ((old contexture-list--rows)
         (places (contexture-list--places))
         (same (contexture-list--same old rows))
         (same-tail (contexture-list--same (reverse (nthcdr same old))
                                           (reverse (nthcdr same rows))))
         (fresh (butlast (nthcdr same rows) same-tail))
         (deleted (- (length old) same same-tail)))
    (setq contexture-list--rows rows)
    (when (or fresh (> deleted 0))
      (save-excursion
        (goto-char (contexture-list--row-position same))
        (delete-region (point) (line-beginning-position (1+ deleted)))
        (insert (mapconcat #'cdr fresh "")))
      (unless (zerop (hash-table-count contexture-list--tags))
        (save-excursion
          (goto-char (contexture-list--row-position same))
          (dolist (row fresh)
            (when-let* ((tag (gethash (car row) contexture-list--tags)))
              (contexture-list--put-tag tag))
            (forward-line))))
      (mapc #'contexture-list--restore-place places))))

(defun contexture-list--same (a b)
  "Return the length of the common prefix of the lists A and B."
  (let ((count 0))
    (while (and a b (equal (car a) (car b)))
      (cl-incf count)
      (setq a (cdr a) b (cdr b)))
    count))

(defun contexture-list--row-position (number)
  "Return the position where row NUMBER, counted from 0, begins."
  (save-excursion
    (goto-char (point-min))
    (forward-line (1+ number))
    (point)))

(defun contexture-list--places ()
  "Return the places of point and of the top of each window.
Each place is a list (WINDOW ID LINE COLUMN START-ID START-LINE);
WINDOW is nil for point itself."
  (cl-loop for window in (cons nil (get-buffer-window-list nil nil t))
           collect (save-excursion
                     (when window (goto-char (window-point window)))
                     `(,window ,(tabulated-list-get-id) ,(line-number-at-pos)
                               ,(current-column)
                               ,@(when window
                                   (goto-char (window-start window))
                                   (list (tabulated-list-get-id)
                                         (line-number-at-pos)))))))

(defun contexture-list--restore-place (place)
  "Restore PLACE, an element of the value of `contexture-list--places'.
Point, and the top of its window if it has one, return to the same item
or, if that item is gone, to the same line."
  (pcase-let* ((`(,window ,id ,line ,column ,start-id ,start-line) place)
               (position (contexture-list--place-position id line column)))
    (if (null window)
        (goto-char position)
      (set-window-point window position)
      (set-window-start window (contexture-list--place-position
                                start-id start-line 0)
                        t))))

(defun contexture-list--place-position (id line column)
  "Return the position of COLUMN of the item ID, or else of LINE."
  (save-excursion
    (goto-char (or (and id (contexture-list--find id)) (point-min)))
    (when (bobp)
      (forward-line (1- line))
      (when (and (eobp) (> line 2)) (forward-line -1)))
    (move-to-column column)
    (point)))

(defun contexture-list--find (id)
  "Return the position of the row of the item ID, or nil."
  (when-let* ((number (cl-position id contexture-list--rows
                                   :key #'car :test #'equal)))
    (contexture-list--row-position number)))

(defun contexture-list--resized (window)
  "Fit the columns to WINDOW, which shows this list."
  (with-current-buffer (window-buffer window)
    (unless (eql contexture-list--width
                 (window-width (get-buffer-window nil t)))
      (contexture-list--draw))))

;;;; Marks

(defun contexture-list--put-tag (tag)
  "Show the mark TAG, a character or nil, on this line."
  (tabulated-list-put-tag
   (pcase tag
     (?D (propertize "D" 'face 'contexture-list-flagged))
     ('nil " ")
     (_ (propertize (char-to-string tag) 'face 'contexture-list-marked)))))

(defun contexture-list--tagged (tag)
  "Return the ids of the items shown that have the mark TAG."
  (cl-loop for (id . _) in contexture-list--rows
           when (eql tag (gethash id contexture-list--tags)) collect id))

(defun contexture-list--tag (ids tag)
  "Give the items IDS the mark TAG, a character or nil."
  (dolist (id ids)
    (if tag (puthash id tag contexture-list--tags)
      (remhash id contexture-list--tags))
    (when-let* ((position (contexture-list--find id)))
      (save-excursion
        (goto-char position)
        (contexture-list--put-tag tag))))
  (set-buffer-modified-p nil))

;;; See and arrange a context

;; `contexture-list' shows the items of one context with their sources,
;; lines and tokens, and has commands to change them.  The list updates
;; itself when anybody changes the context, and keeps point on the item.
;;
;; No command waits for the server: its effect shows when the answer
;; comes, and if that takes long the echo area says so.

(defconst contexture-list-buffer "*contexture: list*"
  "Name of the buffer that lists a context.")

(defvar contexture-list-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-list-visit)
    (define-key map (kbd "SPC") #'contexture-list-show)
    (define-key map "m" #'contexture-list-mark)
    (define-key map "d" #'contexture-list-flag)
    (define-key map "x" #'contexture-list-execute)
    (define-key map "u" #'contexture-list-unmark)
    (define-key map "U" #'contexture-list-unmark-all)
    (define-key map (kbd "DEL") #'contexture-list-unmark-backward)
    (define-key map "D" #'contexture-list-remove)
    (define-key map "P" #'contexture-list-pin)
    (define-key map "e" #'contexture-list-edit)
    (define-key map "g" #'contexture-list-refresh)
    (define-key map "Z" #'contexture-list-keep-copy)
    (define-key map "N" #'contexture-send-to-agent)
    (define-key map [?\C-/] #'contexture-undo) ; messages name this key
    (define-key map [remap undo] #'contexture-undo)
    (define-key map [remap undo-only] #'contexture-undo)
    (define-key map [remap undo-redo] #'contexture-redo)
    (define-key map "r" #'contexture-redo)
    (define-key map "w" #'contexture-list-copy)
    (define-key map "v" #'contexture-preview)
    (define-key map "=" #'contexture-ediff)
    (define-key map "?" #'describe-mode)
    (define-key map "S" #'contexture-list-sort)
    (define-key map "o" #'contexture-list-unsort)
    (define-key map (kbd "M-<up>") #'contexture-list-move-up)
    (define-key map (kbd "M-<down>") #'contexture-list-move-down)
    (define-key map (kbd "ESC <up>") #'contexture-list-move-up)
    (define-key map (kbd "ESC <down>") #'contexture-list-move-down)
    (define-key map ">" #'contexture-list-to-special)
    (define-key map "<" #'contexture-list-to-general)
    (define-key map "/t" #'contexture-list-filter-type)
    (define-key map "/s" #'contexture-list-filter-state)
    (define-key map "/n" #'contexture-list-filter-name)
    (define-key map "/c" #'contexture-list-filter-contents)
    (define-key map "//" #'contexture-list-unfilter)
    ;; In `tabulated-list-mode' these set widths; here widths follow the window.
    (define-key map "{" #'undefined)
    (define-key map "}" #'undefined)
    (define-key map [mouse-2] #'contexture-list-visit)
    (define-key map [follow-link] 'mouse-face)
    map)
  "Keymap of `contexture-list-mode'.")

(defvar-local contexture-list--updating nil
  "Non-nil during an update.
The symbol `again' means that the context changed meanwhile, `outdated'
that the list already shows something newer than the coming answer.")

(put 'contexture-undo :advertised-binding [?\C-/])

;;;; The list

(define-derived-mode contexture-list-mode tabulated-list-mode "Contexture"
  "Major mode for the items of a buffer, in the order that a model sees.
Those for everywhere, this project and this buffer are sections; a context
that you chose has none.

RET visits an item's source, SPC shows its text and `e' edits it.

`m' marks items, and `D', `P' and `w' (remove, pin, copy) then apply to
all marked items.  `d' flags items for removal and `x' removes those
flagged.  `u' removes mark and flag, `U' does so for all items.  You can
undo every change of the context with \\[contexture-undo], and redo it
with \\[contexture-redo].

\\[contexture-list-move-up] and \\[contexture-list-move-down] move an item.
`Z' keeps a copy of items, which no longer follow their sources.
`=' compares a buffer with its file, which changed under unsaved edits.
`N' sends items with the next prompt of an agent; the column of what was
sent appears with the first item that an agent has.
`>' moves items from everywhere to this project, and from there to this
buffer; `<' moves them back.
`S' sorts by a column and `o' goes back to the order of the context.
The keys behind `/' restrict the list to a type, a state, or a match in
name or contents.

See Info node `(contexture)The list'.

\\{contexture-list-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq tabulated-list-padding 2
        tabulated-list-use-header-line nil
        tabulated-list-sort-key nil
        truncate-lines t
        contexture-list--tags (make-hash-table :test #'equal)
        revert-buffer-function #'contexture-list-refresh)
  (contexture--show-tool-bar '("refresh" contexture-list-refresh "Refresh")
                             '("show" contexture-preview "Preview")
                             '("copy" contexture-list-copy "Copy")
                             '("delete" contexture-list-remove "Remove")
                             '("undo" contexture-undo "Undo")
                             '("help" describe-mode "Help"))
  (add-hook 'kill-buffer-hook #'contexture-list--unwatch nil t)
  (add-hook 'window-size-change-functions #'contexture-list--resized nil t))

;;;###autoload
(defun contexture-list (context)
  "List the items of CONTEXT, a name or a list of names.
By default these are all items that this buffer sends, in sections; with a
prefix argument, choose one context.  If this buffer's context is empty,
another one is offered."
  (interactive (list (contexture--manager-to-show current-prefix-arg)))
  (let ((buffer (get-buffer-create contexture-list-buffer)))
    (with-current-buffer buffer
      (unless (derived-mode-p 'contexture-list-mode)
        (contexture-list-mode))
      (unless (equal context contexture-context)
        (setq contexture-context context
              contexture-list--items nil
              contexture-list--capacity nil
              contexture-list--filters nil
              contexture-list--loaded nil)
        (clrhash contexture-list--tags)
        (contexture-list--draw)))
    (pop-to-buffer buffer)
    (with-current-buffer buffer
      (contexture-list--watch)
      (contexture-list--update-capacity)
      (contexture-list--update t))))

;;;; Following the context

(defun contexture-list--watch ()
  "Make this buffer follow its context."
  (contexture-watch #'contexture-list--changed)
  (contexture-agents--follow (current-buffer) #'contexture-list--draw)
  (add-hook 'contexture-connected-hook #'contexture-list--update-buffer))

(defun contexture-list--unwatch ()
  "Undo what `contexture-list--watch' did."
  (contexture-unwatch #'contexture-list--changed)
  (contexture-agents--unfollow (current-buffer))
  (contexture-count--unfollow (current-buffer))
  (remove-hook 'contexture-connected-hook #'contexture-list--update-buffer))

(defun contexture-list--changed (method params)
  "Update the list if METHOD with PARAMS says that its context changed."
  (when-let* ((buffer (and (eq method 'context-changed)
                           (get-buffer contexture-list-buffer))))
    (with-current-buffer buffer
      (when (contexture--of-context-p (plist-get params :manager) contexture-context)
        (when (or (null contexture-list--capacity) ; there was no context yet
                  (member (plist-get params :method)
                          '("configure-manager" "drop-manager" "undo" "redo")))
          (contexture-list--update-capacity))
        (contexture-list--update)))))

(defun contexture-list--update-buffer ()
  "Update the list from any buffer."
  (contexture--with-live-buffer (get-buffer contexture-list-buffer)
    (contexture-list--update-capacity)
    (contexture-list--update)))

(defun contexture-list--update-capacity ()
  "Ask for the capacity of the context; the next update shows it.
Several layers have no common capacity, so none is shown for them."
  (let ((buffer (current-buffer))
        (manager contexture-context))
    (contexture-request-async
     'list-managers nil
     :error #'ignore                    ; the update that follows shows the error
     :success
     (lambda (all)
       (contexture--with-live-buffer buffer
         (when (and (equal manager contexture-context) (stringp manager))
           (setq contexture-list--capacity
                 (plist-get (contexture--entry :manager manager all)
                            :max-items))))))))

(defun contexture-list--update (&optional tell)
  "Fetch this list's items and show them.
With TELL, tell the user if the items do not come soon.  During an update,
changes are only noted, so that many changes in a row cost two updates."
  (if contexture-list--updating
      (unless (eq contexture-list--updating 'outdated)
        (setq contexture-list--updating 'again))
    (setq contexture-list--updating t)
    (let ((buffer (current-buffer))
          (manager contexture-context)
          (brief (not (assq 'contents contexture-list--filters))))
      (funcall
       (if tell #'contexture--request-patiently #'contexture-request-async)
       'list-items (append (contexture--context-params manager)
                           (list :brief brief))
       :success (lambda (items)
                  (contexture-list--updated buffer manager items))
       :error (lambda (problem)
                (contexture-show-error problem)
                (contexture-list--updated buffer nil nil))))))

(defun contexture-list--updated (buffer manager items)
  "Show in BUFFER the ITEMS fetched for MANAGER; nil means that fetching failed.
Do not show them if the list is already newer."
  (contexture--with-live-buffer buffer
    (let* ((state contexture-list--updating)
           (new (not contexture-list--loaded))
           (other (and manager (not (equal manager contexture-context)))))
      (setq contexture-list--updating nil)
      (unless (or (null manager) other (eq state 'outdated))
        (setq contexture-list--items
              ;; Lines of reused objects need not be made again.  Items of
              ;; unsaved text are not reused, since their lines depend on the
              ;; file too.
              (let ((known (make-hash-table :test #'equal)))
                (dolist (item contexture-list--items)
                  (puthash (plist-get item :id) item known))
                (mapcar (lambda (item)
                          (let ((old (gethash (plist-get item :id) known)))
                            (if (and (equal item old)
                                     (not (plist-get (plist-get item :metadata) :modified)))
                                old
                              item)))
                        items))
              contexture-list--loaded t)
        (contexture-list--draw)
        (when new
          (when-let* ((place (next-single-property-change (point-min) 'tabulated-list-id)))
            (goto-char place)
            (dolist (window (get-buffer-window-list nil nil t))
              (set-window-point window place)))))
      (when (or other (memq state '(again outdated)))
        (contexture-list--update)))))

(defun contexture-list--draw-ahead (items)
  "Show ITEMS, which are newer than the answer to a running update."
  (setq contexture-list--items items)
  (when contexture-list--updating
    (setq contexture-list--updating 'outdated))
  (contexture-list--draw))

;;;; Calls

(cl-defun contexture-list--call (method params success &optional failure)
  "Call METHOD with PARAMS on this list's context.
SUCCESS is called with the result in the list's buffer; FAILURE is called
with the error, after it was shown.  If no answer comes soon, say so."
  (let ((buffer (current-buffer)))
    (cl-flet ((back (function argument)
                (contexture--with-live-buffer buffer
                  (funcall function argument))))
      (contexture--call-each
       method (contexture-list--each-params method params)
       (lambda (result) (back success result))
       (lambda (problem)
         (contexture-show-error problem)
         (back (or failure #'ignore) problem))))))

(defun contexture-list--each-params (method params)
  "Return the parameters of all calls that METHOD with PARAMS takes, as a list.
In a list of layers, each item is changed in the context that holds it."
  (cond ((or (stringp contexture-context) (eq method 'list-items))
         (list (append (contexture--context-params contexture-context) params)))
        ((plist-member params :id)
         (list (append (list :manager (contexture-list--manager-of
                                       (plist-get params :id)))
                       params)))
        (t
         (cl-loop with all = (or (plist-get params :ids)
                                 (contexture--pluck :id contexture-list--items))
                  for (manager . ids) in (seq-group-by #'contexture-list--manager-of all)
                  collect `(:manager ,manager ,@(plist-put (copy-sequence params) :ids ids))))))

(defun contexture-list--manager-of (id)
  "Return the name of the context that holds the item ID.
If no layer is known to hold it, return the most specific one."
  (if (stringp contexture-context) contexture-context
    (or (plist-get (contexture-list--item-with id) :manager)
        (car (last contexture-context)))))

(defun contexture-list--change (method params &optional tell)
  "Call METHOD with PARAMS on this list's context, then update the list.
TELL is called with the result in the list's buffer."
  (setq contexture--last-changed
        (contexture-list--manager-of (or (plist-get params :id)
                                         (car (plist-get params :ids)))))
  (contexture-list--call method params
                         (lambda (result)
                           (when tell (funcall tell result))
                           (contexture-list--update))
                         (lambda (_problem) (contexture-list--update))))

;;;; Items

(defun contexture-list--item ()
  "Return the item at point; signal an error if there is none."
  (or (contexture-list--item-with (tabulated-list-get-id))
      (user-error "There is no item here")))

(defun contexture-list--item-with (id)
  "Return the item with ID, or nil."
  (contexture--entry :id id contexture-list--items))

(defun contexture-list--ids-here ()
  "Return the ids of the items in the region, or of the one at point."
  (if (use-region-p)
      (let ((end (region-end)))
        (save-excursion
          (goto-char (region-beginning))
          (forward-line 0)
          (cl-loop while (< (point) end)
                   when (tabulated-list-get-id) collect it
                   do (forward-line))))
    (list (plist-get (contexture-list--item) :id))))

(defun contexture-list--ids ()
  "Return the ids of the items that a command applies to.
They are the ones in the region, else the marked ones, else the one at
point."
  (or (and (not (use-region-p)) (contexture-list--tagged ?>))
      (contexture-list--ids-here)))

(defun contexture-list--wishes ()
  "Return the items that a command applies to, for `contexture-agents--toggle'."
  (mapcar (lambda (id)
            (contexture-agents--wish (contexture-list--manager-of id)
                                     (contexture-list--item-with id)))
          (contexture-list--ids)))

;;;; Commands

(defun contexture-list-refresh (&rest _)
  "Read the files of this context again and update the list.
Text that moved within its file is found again; items whose file is gone
are shown as gone."
  (interactive)
  (contexture-list--update-capacity)
  (contexture-list--change 'refresh-items nil
                           #'contexture-list--tell-refreshed))

(defun contexture-list--tell-refreshed (result)
  "Show a message about RESULT of `refresh-items'."
  (let* ((items (plist-get result :items))
         (outcomes (contexture--pluck :outcome items))
         (stale (cl-count :stale outcomes))
         (missing (cl-count :missing outcomes))
         (changed (cl-loop for item in items
                           for known = (contexture-list--item-with (plist-get item :id))
                           for verb = (pcase (plist-get item :outcome)
                                        (:updated "changed")
                                        (:moved "moved"))
                           when (and known verb)
                           collect (format "%s %s"
                                           (contexture--description
                                            (plist-get known :metadata))
                                           verb))))
    (contexture-list--say-refreshed
     "" (list (when changed
                (concat (string-join (seq-take changed 3) ", ") (when (nthcdr 3 changed) ", ...")))
              (when (> stale 0)
                (format "%s could not be found in the file" (contexture--count stale "item")))
              (when (> missing 0)
                (format "the file of %s is gone" (contexture--count missing "item"))))
     (cl-some (lambda (item)
                (contexture--remote-p (or (plist-get (plist-get item :metadata) :filename) "")))
              contexture-list--items))))

(defun contexture-list--say-refreshed (whose parts remote)
  "Say that the files WHOSE items are here were read, with PARTS, strings or nil.
If REMOTE is non-nil, some are on other machines, at which nobody looked."
  (contexture--message "Read the files%s again: %s%s" whose
                       (string-join (or (delq nil parts) '("nothing has changed")) "; ")
                       (if remote "; those on other machines were not read" "")))

(defun contexture-list-keep-copy ()
  "Keep a copy of the items in the region, else the marked, else at point.
A copy no longer follows its file, and is shown with its date.  If all of
them are copies, let those that come from files follow them again."
  (interactive)
  (let* ((items (mapcar #'contexture-list--item-with (contexture-list--ids)))
         (live (cl-remove-if-not (lambda (item) (plist-get item :live)) items))
         (ids (contexture--pluck
               :id (or live
                       (cl-remove-if-not #'contexture-list--has-source-p items)
                       (user-error "There is no source to follow")))))
    (contexture-list--change
     'update-items (list :ids ids :live (if live :false t))
     (lambda (_)
       (unless live
         (dolist (item items)
           (contexture-live--follow-copy (contexture-list--manager-of (plist-get item :id))
                                         item)))
       (contexture--message "%s %s" (contexture--count (length ids) "item")
                            (if live "kept as a copy of today: changes to the source no longer count"
                              "following the source again"))))
    (setq deactivate-mark t)))

(defun contexture-list--tag-here (tag)
  "Set the mark TAG on the item at point, or those in the region; move on."
  (contexture-list--tag (contexture-list--ids-here) tag)
  (if (use-region-p)
      (setq deactivate-mark t)
    (forward-line)))

(defun contexture-list-mark ()
  "Mark the item at point, or those in the region, for the next command."
  (interactive)
  (contexture-list--tag-here ?>))

(defun contexture-list-flag ()
  "Flag the item at point, or those in the region, for removal."
  (interactive)
  (contexture-list--tag-here ?D))

(defun contexture-list-unmark ()
  "Remove mark and flag from the item at point, or from all in the region."
  (interactive)
  (contexture-list--tag-here nil))

(defun contexture-list-unmark-backward ()
  "Go to the previous item and remove its mark and flag."
  (interactive)
  (goto-char (or (save-excursion
                   (while (and (zerop (forward-line -1)) (null (tabulated-list-get-id))))
                   (and (tabulated-list-get-id) (point)))
                 (user-error "There is no item above")))
  (contexture-list--tag (list (tabulated-list-get-id)) nil))

(defun contexture-list-unmark-all ()
  "Remove the marks and flags of all items."
  (interactive)
  (let ((ids (hash-table-keys contexture-list--tags)))
    (contexture-list--tag ids nil)
    (contexture--message "%s unmarked" (contexture--count (length ids) "item"))))

(defun contexture-list-execute ()
  "Remove the flagged items.  `contexture-undo' brings them back."
  (interactive)
  (contexture-list--remove
   (or (contexture-list--tagged ?D)
       (user-error "No item is flagged; `d' flags one"))))

(defun contexture-list-remove ()
  "Remove the items in the region, else the marked ones, else the one at point.
`contexture-undo' brings them back."
  (interactive)
  (contexture-list--remove (contexture-list--ids))
  (setq deactivate-mark t))

(defun contexture-list--remove (ids)
  "Remove the items IDS and say how to bring them back.
Their lines vanish when the server has answered."
  (contexture-list--change
   'remove-items (list :ids ids)
   (lambda (result)
     (contexture-list--draw-ahead
      (cl-remove-if (lambda (item) (member (plist-get item :id) ids))
                    contexture-list--items))
     (contexture-sets--tell "Removed %s"
                            (contexture--count (plist-get result :removed) "item")))))

(defun contexture-list-pin ()
  "Pin the items in the region, else the marked ones, else the one at point.
Pinned items are never evicted.  If all of them are pinned, unpin them."
  (interactive)
  (let* ((ids (contexture-list--ids))
         (pin (not (cl-every (lambda (id)
                               (plist-get (contexture-list--item-with id) :pinned))
                             ids))))
    (contexture-list--change
     'update-items (list :ids ids :pinned (or pin :false))
     (lambda (_)
       (contexture--message "%s %s" (contexture--count (length ids) "item")
                (if pin "pinned" "unpinned"))))
    (setq deactivate-mark t)))

;;; See and edit the text of an item

;; Showing, copying and editing the text of an item of the list, and
;; visiting its source.  The list has no texts; these are fetched on
;; demand, without waiting.

(defconst contexture-list--item-buffer "*contexture: item*"
  "Name of the buffer that shows one item's text.")

;;;; Texts

(defun contexture-list-item--fetch (ids function)
  "Call FUNCTION with the items IDS and their texts, in the context's order.
It runs in this buffer.  Items that left the context are skipped."
  (contexture-list--call 'list-items (list :ids ids)
                         (lambda (items)
                           (if items (funcall function items)
                             (message "The item is gone")))))

(defun contexture-list-copy ()
  "Copy the text of the items in the region, the marked ones, or the one at point."
  (interactive)
  (contexture-list-item--fetch
   (contexture-list--ids)
   (lambda (items)
     (let ((text (cl-reduce (lambda (whole text) ; each begins a line
                              (concat whole (unless (string-suffix-p "\n" whole) "\n")
                                      text))
                            (contexture--pluck :content items))))
       (kill-new text)
       (contexture--message "Copied %s%s" (contexture--count (length text) "character")
                (when (cdr items)
                  (concat " of " (contexture--count (length items) "item")))))))
  (setq deactivate-mark t))

;;;; Visiting and showing

(defun contexture-list-visit ()
  "Go to where the item at point came from.
If its source is gone, show the item's text."
  (interactive)
  (when (mouse-event-p last-input-event)
    (mouse-set-point last-input-event))
  (let* ((metadata (plist-get (contexture-list--item) :metadata))
         (buffer (contexture-list-item--source-buffer metadata)))
    (if (null buffer)
        (contexture-list-item--show
         (lambda ()
           (contexture--message "%s is gone; this is the text taken from it"
                    (contexture--place metadata))))
      (contexture-list-item--visit buffer metadata))))

(defun contexture-list-item--visit (buffer metadata)
  "Show BUFFER, at the line that METADATA names."
  (pop-to-buffer buffer)
  (when-let* ((line (plist-get metadata :start-line)))
    (let ((position (contexture--widened
                      (contexture--line-position line))))
      (unless (<= (point-min) position (point-max))
        (widen))
      (push-mark nil t)
      (goto-char position))))

(defun contexture-list-item--source-buffer (metadata)
  "Return a buffer with the file, or else the buffer, that METADATA names, or nil."
  (let ((file (plist-get metadata :filename))
        (buffer (plist-get metadata :buffer)))
    (cond (file (contexture--visit-outside file))
          (buffer (get-buffer buffer)))))

(defun contexture-list-show ()
  "Show the text of the item at point in another window."
  (interactive)
  (contexture-list-item--show #'ignore))

(defun contexture-list-item--show (then)
  "Show the text of the item at point, then call THEN."
  (contexture-list-item--fetch
   (list (plist-get (contexture-list--item) :id))
   (lambda (items)
     (contexture-list-item--display (car items))
     (funcall then))))

(defun contexture-list-item--display (item)
  "Show the text of ITEM in another window."
  (with-current-buffer (get-buffer-create contexture-list--item-buffer)
    (contexture--choose-evil-state 'emacs t)
    (let ((inhibit-read-only t))
      (contexture-list-item--insert item)
      (contexture--shorten-lines "in it")
      (ignore-errors
        (font-lock-set-defaults)
        (contexture--draw-code (point-min) (point-max)))
      (contexture--show-hidden))
    (let ((as-of (plist-get item :as-of))
          (reason (plist-get (plist-get item :metadata) :stale)))
      (setq header-line-format
            (contexture--header-line
             (contexture--description (plist-get item :metadata))
             (when as-of (format-time-string " as of %F %R" as-of))
             (when as-of (and reason (concat ": " reason))))))
    (setq-local view-inhibit-help-message t)
    (view-mode-enter nil #'ignore)
    (pop-to-buffer (current-buffer))))

(defun contexture-list-item--insert (item)
  "Replace this buffer's text with that of ITEM, in the major mode for it."
  (contexture--enter-mode (contexture-list-item--mode (plist-get item :metadata))
                          (plist-get item :content))
  (set-buffer-modified-p nil))

(defun contexture-list-item--mode (metadata)
  "Return the major mode for text with METADATA, if it is a safe one.
That is one of `contexture--code-modes', or one for text or code that a
buffer has.  Else return `fundamental-mode'."
  (or (cl-loop for name in (list (plist-get metadata :mode)
                                 (plist-get metadata :language)
                                 (contexture--file-mode
                                  (or (plist-get metadata :filename) "")))
               for mode = (and (stringp name) (intern-soft name))
               when (and (fboundp mode)
                         (or (memq mode contexture--code-modes)
                             (cl-some (lambda (buffer)
                                        (and (eq mode (buffer-local-value 'major-mode buffer))
                                             (with-current-buffer buffer
                                               (derived-mode-p 'prog-mode 'text-mode 'conf-mode))))
                                      (buffer-list))))
               return mode)
      #'fundamental-mode))

;;;; Editing

(defvar-local contexture-list-item--edited nil
  "Item that is edited in this buffer, as last seen.")

(defvar-local contexture-list-item--saving nil
  "Non-nil while the text of this buffer is on its way to the server.")

(defvar contexture-list-edit-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'contexture-list-edit-finish)
    (define-key map (kbd "C-c C-k") #'contexture-list-edit-abort)
    (define-key map [remap save-buffer] #'contexture-list-edit-finish)
    map)
  "Keymap of `contexture-list-edit-mode'.")

(define-minor-mode contexture-list-edit-mode
  "Minor mode for editing the text of an item of a context.
\\<contexture-list-edit-mode-map>\\[contexture-list-edit-finish] saves this buffer's text as the item's, and
\\[contexture-list-edit-abort] discards the change.  The item's file is not touched.

See Info node `(contexture)The list'."
  :lighter " Edit-Item")

(defun contexture-list-edit ()
  "Edit the text of the item at point in its own buffer.
Only the item changes, not its file, which the item no longer follows."
  (interactive)
  (let* ((item (contexture-list--item))
         (buffer (contexture-list-item--edit-buffer (plist-get item :id))))
    (when (and (plist-get item :live)
               (null (plist-get (plist-get item :metadata) :start-line)))
      (user-error "This item is read from its file whenever it is used; \
edit the file"))
    (if buffer
        (pop-to-buffer buffer)
      (contexture-list-item--fetch (list (plist-get item :id))
                                   #'contexture-list-item--edit))))

(defun contexture-list-item--edit-buffer (id)
  "Return the buffer in which the item ID of this context is edited, or nil."
  (cl-find-if (lambda (buffer)
                (with-current-buffer buffer
                  (and contexture-list-edit-mode
                       (equal id (plist-get contexture-list-item--edited :id)))))
              (buffer-list)))

(defun contexture-list-item--edit (items)
  "Open a buffer to edit the first of ITEMS, unless there is one already.
Select it unless the user went elsewhere meanwhile."
  (let* ((item (car items))
         (here (eq (window-buffer) (current-buffer)))
         (buffer (or (contexture-list-item--edit-buffer (plist-get item :id))
                     (contexture-list-item--make-edit-buffer item))))
    (if here (pop-to-buffer buffer) (display-buffer buffer))))

(defun contexture-list-item--make-edit-buffer (item)
  "Return a new buffer to edit ITEM of this list's context."
  (let ((manager (or (plist-get item :manager) contexture-context))
        (source (contexture--description (plist-get item :metadata))))
    (with-current-buffer (generate-new-buffer
                          (format "*contexture: edit %s*" source))
      (contexture-list-item--insert item)
      (contexture--show-hidden)
      (setq buffer-undo-list nil
            contexture-context manager
            contexture-list-item--edited item
            header-line-format
            (contexture--header-line
             "Editing " source
             (substitute-command-keys
              "\\<contexture-list-edit-mode-map>: \
\\[contexture-list-edit-finish] saves the change, \
\\[contexture-list-edit-abort] discards it")))
      (contexture-list-edit-mode)
      (current-buffer))))

(defun contexture-list-edit-finish ()
  "Save this buffer's text as the item's, and leave.
If the item was changed elsewhere meanwhile, nothing is overwritten: a
message says so, and you can repeat the command to overwrite that change."
  (interactive)
  (cond ((not contexture-list-item--edited)
         (user-error "No item is edited here"))
        (contexture-list-item--saving
         (user-error "The server has not answered yet"))
        ((not (buffer-modified-p))
         (message "Nothing was changed")
         (quit-window t))
        ((= (buffer-size) 0)
         (user-error "An item cannot be empty; remove it in the list"))
        (t (setq contexture-list-item--saving t)
           (contexture-list--call
            'list-items
            (list :ids (list (plist-get contexture-list-item--edited :id)))
            (lambda (items) (contexture-list-item--save (car items)))
            #'contexture-list-item--not-saved))))

(defun contexture-list-item--save (current)
  "Save this buffer's text unless the item changed meanwhile.
CURRENT is the item as it is now, or nil if it is gone."
  (cond ((null current)
         (contexture-list-item--not-saved)
         (message "The item was removed meanwhile, so nothing was saved; \
your text is still here"))
        ((not (equal (plist-get current :content)
                     (plist-get contexture-list-item--edited :content)))
         (contexture-list-item--not-saved)
         (setq contexture-list-item--edited current)
         (contexture-list-item--display current)
         (contexture--message "%s"
                  (substitute-command-keys
                   "The item was changed elsewhere meanwhile; the other window \
shows it, and \\[contexture-list-edit-finish] again overwrites it")))
        (t (contexture-list-item--send))))

(defun contexture-list-item--not-saved (&optional _problem)
  "Allow this buffer's text to be saved again."
  (setq contexture-list-item--saving nil))

(defun contexture-list-item--send ()
  "Send this buffer's text to the server, then leave the buffer."
  (let ((tick (buffer-chars-modified-tick))
        (text (contexture--widened
                (buffer-substring-no-properties (point-min) (point-max)))))
    (contexture-list--call
     'update-items
     (list :id (plist-get contexture-list-item--edited :id) :content text :live :false)
     (lambda (result)
       (let ((item (plist-get result :item)))
         (setq contexture-list-item--saving nil
               contexture-list-item--edited item)
         (if (/= tick (buffer-chars-modified-tick))
             (message "Saved, except what you typed since")
           (set-buffer-modified-p nil)
           (contexture-list-item--leave)
           (contexture--message "Changed %s (%s)"
                                (contexture--source (plist-get item :metadata))
                                (contexture--count (plist-get item :tokens) "token")))))
     #'contexture-list-item--not-saved)))

(defun contexture-list-item--leave ()
  "Kill this buffer and give its window back."
  (if-let* ((window (get-buffer-window nil t)))
      (quit-window t window)
    (kill-buffer)))

(defun contexture-list-edit-abort ()
  "Leave this buffer without changing the item."
  (interactive)
  (unless contexture-list-item--edited
    (user-error "No item is edited here"))
  (when (or (not (buffer-modified-p))
            (contexture--y-or-n-p "Discard your change? "))
    (set-buffer-modified-p nil)
    (contexture-list-item--leave)))

;;; Sort, filter and move in the list

;; Sorting and filtering the list, and moving items.  Sorting and
;; filtering change only the list; moving changes the order of the context
;; itself, which is the order a model sees.

;;;; Sorting

(defun contexture-list-sort (column)
  "Sort the list by COLUMN, a name: the one at point, or one that you choose.
Sorting by the same column again reverses the order.  The context keeps
its own order; \\<contexture-list-mode-map>\\[contexture-list-unsort] shows that again."
  (interactive (list (contexture-list-order--column last-input-event)))
  (when (string-empty-p column)
    (user-error "No column was chosen"))
  (setq tabulated-list-sort-key
        (cons column (and (equal column (car tabulated-list-sort-key))
                          (not (cdr tabulated-list-sort-key)))))
  (contexture-list--draw)
  (contexture--message "Sorted by %s%s; %s shows the context's order"
           (downcase column)
           (if (cdr tabulated-list-sort-key) ", backwards" "")
           (substitute-command-keys "\\[contexture-list-unsort]")))

(defun contexture-list-order--column (event)
  "Return the column clicked by EVENT, or at point, or chosen by the user."
  (when (mouse-event-p event)
    (mouse-set-point event))
  (or (get-text-property (point) 'contexture-list-column)
      (and (or (mouse-event-p event)
               (and (tabulated-list-get-id) (> (current-column) 3)))
           (let ((start 2))
             (cl-loop for (name width sortable) across tabulated-list-format
                      do (setq start (+ start width 1))
                      when (< (current-column) start) return (and sortable name))))
      (let ((completion-ignore-case t))
        (completing-read "Sort by: " (cl-loop for (name _ sortable)
                                              across tabulated-list-format
                                              when sortable collect name)
                         nil t))))

(defun contexture-list-unsort ()
  "Show the items in the order of the context, as a model sees them."
  (interactive)
  (setq tabulated-list-sort-key nil)
  (contexture-list--draw)
  (message "The items are in the order of the context"))

;;;; Moving

(defun contexture-list-move-up ()
  "Move the item at point up by one."
  (interactive)
  (contexture-list-order--move -1))

(defun contexture-list-move-down ()
  "Move the item at point down by one."
  (interactive)
  (contexture-list-order--move 1))

(defun contexture-list-order--move (step)
  "Move the item at point by STEP lines, 1 or -1, in the context too.
The list does not wait for the server, so you can type keys fast."
  (when tabulated-list-sort-key
    (contexture--user-error "The list is sorted by %s, so you would not see the move; \
%s shows the context's order"
                (downcase (car tabulated-list-sort-key))
                (substitute-command-keys "\\[contexture-list-unsort]")))
  (let* ((item (contexture-list--item))
         (shown (contexture-list--shown-items))
         (place (+ step (cl-position item shown)))
         (neighbour (or (and (>= place 0) (nth place shown))
                        (contexture--user-error "This is the %s item"
                                    (if (< step 0) "first" "last")))))
    (unless (equal (plist-get item :manager) (plist-get neighbour :manager))
      (contexture--user-error "This is the %s item of its section; %s moves it to another"
                  (if (< step 0) "first" "last")
                  (substitute-command-keys
                   (if (< step 0) "\\[contexture-list-to-general]"
                     "\\[contexture-list-to-special]"))))
    (contexture-list--draw-ahead
     (cl-loop for each in contexture-list--items
              if (eq each neighbour)
              append (if (> step 0) (list neighbour item) (list item neighbour))
              else unless (eq each item) collect each))
    (contexture-list--change 'move-items
                             (list :id (plist-get item :id)
                                   (if (> step 0) :after :before)
                                   (plist-get neighbour :id)))))

;;;; Moving to another layer

(defun contexture-list-to-special ()
  "Move the items in the region, else the marked ones, towards this buffer.
Without any, move the item at point."
  (interactive)
  (contexture-list-order--transfer 1))

(defun contexture-list-to-general ()
  "Move the items in the region, else the marked ones, towards everywhere.
Without any, move the item at point."
  (interactive)
  (contexture-list-order--transfer -1))

(defun contexture-list-order--transfer (step)
  "Move the items that a command applies to by STEP layers, 1 or -1."
  (unless (consp contexture-context)
    (user-error "This list shows one context, and not all that a buffer sends"))
  (let* ((ids (contexture-list--ids))
         (from (contexture-list--manager-of (car ids)))
         (place (+ step (cl-position from contexture-context :test #'equal)))
         (into (or (and (>= place 0) (nth place contexture-context))
                   (contexture--user-error "These items are already in the most %s section"
                               (if (> step 0) "specific" "general")))))
    (unless (cl-every (lambda (id) (equal from (contexture-list--manager-of id))) ids)
      (user-error "These items are in several sections; choose those of one"))
    (contexture-list--change
     'move-items (list :ids ids :into into)
     (lambda (_)
       (setq contexture--last-changed into)
       (contexture-sets--tell "Moved %s to %s" (contexture--count (length ids) "item")
                              (contexture--label into))))
    (setq deactivate-mark t)))

;;;; Filtering

(defun contexture-list-filter-type (type)
  "Show only the items of TYPE, such as code or diff.
Empty input shows all types."
  (interactive (list (contexture-list-order--choose
                      "type" #'contexture-list--kinds)))
  (contexture-list-order--filter 'type type))

(defun contexture-list-filter-state (state)
  "Show only the items in STATE, such as changed.
Empty input shows all states."
  (interactive (list (contexture-list-order--choose
                      "state" (lambda (item) (list (contexture-list--state item))))))
  (contexture-list-order--filter 'state state))

(defun contexture-list-filter-name (regexp)
  "Show only the items whose source, as listed, matches REGEXP.
Empty input shows all."
  (interactive (list (read-regexp "Show only sources that match: ")))
  (contexture-list-order--filter 'name regexp))

(defun contexture-list-filter-contents (regexp)
  "Show only the items whose text matches REGEXP.
Empty input shows all."
  (interactive (list (read-regexp "Show only texts that match: ")))
  (contexture-list-order--filter 'contents regexp))

(defun contexture-list-unfilter ()
  "Show all items of the context again."
  (interactive)
  (setq contexture-list--filters nil)
  (contexture-list--draw)
  (message "All items are shown"))

(defun contexture-list-order--choose (noun values)
  "Ask the user for one of the strings that VALUES returns for the items.
VALUES is a function that returns a new list of strings for an item; NOUN
names such a string in the prompt."
  (completing-read (format "Show only the %s: " noun)
                   (sort (delete-dups (mapcan values contexture-list--items)) #'string<)
                   nil t))

(defun contexture-list-order--filter (kind value)
  "Show only the items whose KIND has VALUE, in addition to other filters.
For the kinds `name' and `contents', VALUE is a regexp.  An empty VALUE
removes the filter of that KIND."
  (when (memq kind '(name contents))
    (condition-case problem (string-match-p value "")
      (invalid-regexp (contexture--user-error "This is not a regular expression: %s"
                                              (cadr problem)))))
  (setq contexture-list--filters
        (append (unless (string-empty-p value) (list (cons kind value)))
                (assq-delete-all kind contexture-list--filters)))
  (if (and (eq kind 'contents) (not (string-empty-p value)))
      (contexture-list--update)         ; the texts are fetched first
    (contexture-list--draw)))

;;; Choose, keep and thin out contexts

;; Commands for whole contexts.  `contexture-switch' chooses the context
;; that this buffer's commands work on; `contexture-save-set' and its kin
;; keep copies under a name; `contexture-remove' and `contexture-clear'
;; remove items without opening the list; `contexture-refresh' reads the
;; items' files again; `contexture-set-limit' changes how many items a
;; context holds; `contexture-undo' undoes the last change, and
;; `contexture-redo' redoes it.

(defvar contexture-set-history nil
  "History of the names of sets.")

;;;; Completion

(defun contexture-sets--annotate (alist describe)
  "Return a function that annotates a name of ALIST.
DESCRIBE is called with the value of the name in ALIST."
  (lambda (name)
    (when-let* ((entry (assoc name alist)))
      (concat (propertize " " 'display '(space :align-to 40))
              (contexture--visible (funcall describe (cdr entry)))))))

(defun contexture-sets--age (seconds)
  "Return a phrase for the age of something made at SECONDS, Unix time."
  (let ((age (contexture-list--age
              (max 0 (- (truncate (float-time)) seconds)))))
    (if (equal age "now") "just now" (concat age " ago"))))

;;;; Removing and undoing

(defun contexture-sets--tell (string &rest arguments)
  "Show STRING with ARGUMENTS, and how to undo what was done."
  (contexture--message "%s; %s undoes it"
                       (apply #'contexture--format string arguments)
                       (contexture--key 'contexture-undo)))

;;;###autoload
(defun contexture-remove (ids &optional name context)
  "Remove the items IDS, a list, from CONTEXT.
Interactively, remove the item of the text at point; if there is none or
several, or with a prefix argument, choose one.  NAME names the items in
the message; CONTEXT is by default the one to which this buffer adds."
  (interactive
   (let ((item (contexture-sets--read-item "Remove item" current-prefix-arg)))
     (list (list (plist-get item :id))
           (contexture--description (plist-get item :metadata))
           (plist-get item :manager))))
  (let ((context (or context (contexture-adding-context))))
    (setq contexture--last-changed context)
    (contexture--request-patiently
     'remove-items (list :manager context :ids ids)
     :success (lambda (result)
                (contexture-sets--tell
                 "Removed %s from %s"
                 (or name (contexture--count (plist-get result :removed) "item"))
                 (contexture--label context))))))

(defun contexture-sets--read-item (prompt ask)
  "Return the item at point; choose with PROMPT if that is unclear, or if ASK.
An item of lines around point is preferred to one of the whole file."
  (let* ((manager (contexture-current-context))
         (items (or (contexture--ask 'list-items
                                     (append (contexture--context-params manager)
                                             '(:brief t)))
                    (contexture--user-error "%s has no items" (contexture--capitalized
                                                   (contexture--label manager)))))
         (whole (cl-remove-if-not #'contexture-sets--here-p items))
         (here (or (cl-remove-if-not
                    (lambda (item) (plist-get (plist-get item :metadata) :start-line))
                    whole)
                   whole)))
    (if (and here (null (cdr here)) (not ask))
        (car here)
      (contexture-sets--choose-item
       prompt (if ask items (or here items)) (car (last here))))))

(defun contexture-sets--here-p (item)
  "Return non-nil if ITEM is from this buffer or its file, and has point's line.
An item of the whole buffer or file has it."
  (let* ((metadata (plist-get item :metadata))
         (base (contexture--base-buffer))
         (file (buffer-file-name base))
         (filename (plist-get metadata :filename))
         (start (plist-get metadata :start-line))
         (line (line-number-at-pos nil t)))
    (and (if filename
             (and file (equal filename (expand-file-name file)))
           (equal (plist-get metadata :buffer) (buffer-name base)))
         (or (null start)
             (<= start line (or (plist-get metadata :end-line) start))))))

(defun contexture-sets--choose-item (prompt items default)
  "Ask with PROMPT for one of ITEMS, by default DEFAULT or the newest."
  (let* ((alist (contexture-sets--name-items (reverse items)))
         (default (or (car (rassq default alist)) (caar alist)))
         (name (completing-read
                (format-prompt prompt (contexture--visible default))
                (contexture--table
                 (mapcar #'car alist) 'contexture-item
                 (contexture-sets--annotate
                  alist
                  (lambda (item)
                    (format "%s, %s, %s" (contexture-list--kind item)
                            (contexture--count (or (plist-get item :tokens) 0) "token")
                            (contexture-sets--age (plist-get item :timestamp))))))
                nil t nil nil default)))
    (or (cdr (assoc name alist))
        (user-error "No item was chosen"))))

(defun contexture-sets--name-items (items)
  "Return an alist from unique names to ITEMS."
  (let (alist)
    (dolist (item items (nreverse alist))
      (let ((name (contexture--description (plist-get item :metadata))))
        (when (assoc name alist)
          (setq name (format "%s <%s>" name (plist-get item :id))))
        (push (cons name item) alist)))))

;;;###autoload
(defun contexture-keep-copy (item &optional follow)
  "Keep a copy of ITEM, so that it no longer follows its source.
From then on, its text is shown with its date.  With FOLLOW, the prefix
argument, let it follow its source again.  Interactively, ITEM is that
of the text at point; if there is none or several, choose one."
  (interactive
   (list (contexture-sets--read-item
          (if current-prefix-arg "Let item follow its source" "Keep a copy of item") nil)
         current-prefix-arg))
  (let ((manager (or (plist-get item :manager) (contexture-adding-context)))
        (name (contexture--description (plist-get item :metadata))))
    (when (and follow (not (contexture-list--has-source-p item)))
      (contexture--user-error "%s has no source to follow" name))
    (setq contexture--last-changed manager)
    (contexture--request-patiently
     'update-items (list :manager manager :id (plist-get item :id) :brief t
                         :live (if follow t :false))
     :success (lambda (_)
                (when follow (contexture-live--follow-copy manager item))
                (contexture--message "%s %s in %s"
                         (if follow "Following again:" "Kept a copy of today:")
                         name (contexture--label manager))))))

;;;###autoload
(defun contexture-ediff ()
  "Compare this buffer, which has unsaved edits, with its file.
In a list of items, compare the buffer of the item at point."
  (interactive)
  (let ((buffer (if (derived-mode-p 'contexture-list-mode)
                    (contexture--visited-buffer
                     (plist-get (plist-get (contexture-list--item) :metadata) :filename))
                  (contexture--base-buffer))))
    (unless (and buffer (buffer-file-name buffer))
      (user-error "No buffer visits this file, so there are no edits to compare"))
    (with-current-buffer buffer
      (ediff-current-file))))

;;;###autoload
(defun contexture-clear ()
  "Empty the context to which this buffer adds.
`contexture-undo' brings it back."
  (interactive)
  (let ((manager (contexture-adding-context)))
    (setq contexture--last-changed manager)
    (contexture--request-patiently
     'remove-items (list :manager manager :all t)
     :success
     (lambda (result)
       (let ((removed (or (plist-get result :removed) 0)))
         (if (> removed 0)
             (contexture-sets--tell "Removed %s from %s"
                                    (contexture--count removed "item")
                                    (contexture--label manager))
           (contexture--message "%s has no items" (contexture--capitalized
                                  (contexture--label manager)))))))))

;;;###autoload
(defun contexture-undo ()
  "Undo the last change to this buffer's context.
What one command changed is one change, in all contexts.  The context is
the one that was changed last in this Emacs, or else the one to which this
buffer adds.  Repeat it to go further back.
`contexture-redo' brings back what was undone.  `contexture-menu' shows
beforehand what this would undo."
  (interactive)
  (contexture-sets--step 'undo :undone "Undid" "redoes"))

;;;###autoload
(defun contexture-redo ()
  "Redo the change to this buffer's context that was undone last.
Repeat it to redo earlier undone changes.  After a new change of the
context, nothing can be redone; items that follow their files do not count
as changed."
  (interactive)
  (contexture-sets--step 'redo :redone "Redid" "undoes"))

(defun contexture-sets--step (method what did reverses)
  "Call METHOD, `undo' or `redo', and report it.
WHAT is the member of its result that names the change.  DID begins the
report; REVERSES says what the opposite command does."
  (let ((manager (contexture-sets--manager-to-undo)))
    (setq contexture--last-changed manager)
    (contexture--request-patiently
     method (list :manager manager :describe t)
     :success
     (lambda (result)
       (contexture--with-size
        ;; The change may have brought back what covers others.
        manager (append result '(:covers t))
        (lambda (size)
          (contexture--message
           "%s %s in %s%s (%s)%s" did
           (contexture-sets--change-name (plist-get result what)
                                         (plist-get result :change))
           (contexture--label manager)
           (mapconcat (lambda (other) (concat " and " (contexture--label other)))
                      (plist-get result :also) "")
           size
           (if (equal (plist-get result what) "push-next") ""
             (format "; %s %s it"
                     (contexture--key (if (eq method 'undo) 'contexture-redo
                                        'contexture-undo))
                     reverses)))))))))

(defun contexture-sets--change-name (method change)
  "Return a phrase for the change by METHOD.
CHANGE is the server's description of it, or nil."
  (let ((count (or (plist-get change :count) 0))
        (name (contexture-sets--change method)))
    (cond ((plist-get change :set)
           (format "%s (%s)" name (contexture--visible (plist-get change :set))))
          ((or (= count 0) (not (string-match-p "\\`an? " name))) name)
          (t (format "%s of %s" name
                     (if (= count 1)
                         (contexture--description
                          (plist-get (car (plist-get change :items)) :metadata))
                       (contexture--count count "item")))))))

(defun contexture-sets--manager-to-undo ()
  "Return the name of the context whose last change is to be undone."
  (let ((context (contexture-current-context)))
    (if (and (listp context) (member contexture--last-changed context))
        contexture--last-changed
      (contexture-adding-context))))

(defun contexture-sets--change (method)
  "Return a phrase for the change by METHOD, a name from the server."
  (pcase (contexture--name method)
    ((or "add-item" "add-file" "add-tree") "an addition")
    ("remove-items" "a removal")
    ("clear-manager" "the clearing")
    ("update-items" "an edit")
    ("move-items" "a move")
    ("transfer-items" "a transfer")
    ("open-layers" "the move of items to other contexts")
    ("pin-items" "a pinning or unpinning")
    ("freeze-items" "the copy")
    ("refresh-items" "a refresh")
    ("load-set" "the loading of a set")
    ("save-set" "the saving of a set")
    ("drop-set" "the dropping of a set")
    ("configure-manager" "a change of the limit")
    ("drop-manager" "the dropping of the context")
    ("push-next" "a planned sending")
    (other other)))

;;;; Refreshing and making room

;;;###autoload
(defun contexture-refresh ()
  "Read the files of all items that this buffer sends again.
Text that moved within its file is found again; text that is gone from
its file stays as it is and is shown as changed."
  (interactive)
  (let ((context (contexture-current-context)))
    (contexture--call-each
     'refresh-items
     (mapcar (lambda (manager) (list :manager manager))
             (ensure-list context))
     (apply-partially #'contexture-sets--tell-refreshed context
                      (contexture--remote-p default-directory))
     #'contexture-show-error)))

(defun contexture-sets--tell-refreshed (context remote result)
  "Show a message about RESULT of refreshing CONTEXT, which is REMOTE or not."
  (let ((outcomes (contexture--pluck :outcome (plist-get result :items))))
    (contexture-list--say-refreshed
     (contexture--format " of %s" (contexture--label-of-text context))
     (cl-loop for (kind . words)
              in '((:updated . "changed") (:moved . "moved within the file")
                   (:stale . "no longer found in the file")
                   (:missing . "whose file is gone"))
              for number = (cl-count kind outcomes)
              when (> number 0) collect (format "%d %s" number words))
     remote)))

;;;###autoload
(defun contexture-set-limit (items)
  "Set the most items that this buffer's context holds to ITEMS, 1 to 1000.
If it holds more, the oldest items that are not pinned leave it;
`contexture-undo' brings them back."
  (interactive (list (contexture-sets--read-capacity)))
  (unless (and (natnump items) (<= 1 items contexture--max-items))
    (user-error "A context holds from 1 to %d items" contexture--max-items))
  (let ((manager (contexture-adding-context)))
    (contexture--request-patiently
     'configure-manager (list :manager manager :max-items items)
     :success
     (lambda (result)
       (let ((evicted (length (plist-get result :evicted))))
         (contexture--message "%s now holds at most %s%s"
                  (contexture--capitalized (contexture--label manager))
                  (contexture--count items "item")
                  (when (> evicted 0)
                    (format "; %s left it, and %s brings %s back"
                            (contexture--oldest evicted)
                            (contexture--key 'contexture-undo)
                            (if (= evicted 1) "it" "them")))))))))

(defun contexture-sets--read-capacity ()
  "Read the maximum number of items for this buffer's context."
  (let* ((manager (contexture-adding-context))
         (entry (contexture--entry :manager manager
                                   (contexture--ask 'list-managers nil)))
         (now (or (plist-get entry :max-items)
                  (plist-get (plist-get (contexture--ask 'initialize nil) :limits)
                             :max-items))))
    (read-number (contexture--format "Maximum number of items in %s (1 to %d): "
                                     (contexture--label manager)
                                     contexture--max-items)
                 now)))

;;;; Sets

;;;###autoload
(defun contexture-save-set (name)
  "Save a copy of this buffer's context as the set called NAME.
This replaces a set of that name; `contexture-undo' brings it back."
  (interactive
   (let ((manager (contexture-adding-context)))
     (when (eql 0 (plist-get (contexture--ask 'list-items (list :manager manager :count-only t))
                             :count))
       (contexture--user-error "%s has no items to save"
                               (contexture--capitalized (contexture--label manager))))
     (list (contexture-sets--read-set "Save as set" nil))))
  (let ((manager (contexture-adding-context)))
    (contexture--request-patiently
     'save-set (list :manager manager :name name)
     :success (lambda (result)
                (contexture--message "Saved %s of %s as the set %s%s"
                         (contexture--count (plist-get result :count) "item")
                         (contexture--label manager) name
                         (when (plist-get result :replaced)
                           (format " in place of the earlier one; %s undoes it"
                                   (contexture--key 'contexture-undo))))))))

;;;###autoload
(defun contexture-load-set (name &optional append)
  "Replace this buffer's context with the items of the set NAME.
With APPEND, the prefix argument, add them to the context instead.
`contexture-undo' brings the old items back."
  (interactive (list (contexture-sets--read-set
                      (if current-prefix-arg "Append set" "Load set") t)
                     current-prefix-arg))
  (let ((manager (contexture-adding-context)))
    (contexture--request-patiently
     'load-set (list :manager manager :name name
                     :mode (if append :append :replace))
     :success (lambda (result)
                (let ((left (length (plist-get result :left))))
                  (contexture-sets--tell
                   "Loaded %s of the set %s into %s%s"
                   (contexture--count (length (plist-get result :ids)) "item")
                   name (contexture--label manager)
                   (when (> left 0)
                     (format ", which lost %s" (contexture--count left "item")))))))))

;;;###autoload
(defun contexture-drop-set (name)
  "Delete the set called NAME.  `contexture-undo' brings it back."
  (interactive (list (contexture-sets--read-set "Drop set" t)))
  (contexture--request-patiently
   'save-set (list :manager (contexture-adding-context) :name name :drop t)
   :success (lambda (_) (contexture-sets--tell "Dropped the set %s" name))))

(defun contexture-sets--read-set (prompt existing)
  "Read the name of a set with PROMPT; of one that exists if EXISTING."
  (let* ((alist (mapcar (lambda (set) (cons (plist-get set :name) set))
                        (contexture--ask 'list-sets nil))))
    (when (and existing (null alist))
      (user-error "There are no sets yet; `contexture-save-set' saves one"))
    (let ((name (minibuffer-with-setup-hook
                    (if existing #'ignore #'contexture-sets--allow-spaces)
                  (completing-read
                   (concat prompt ": ")
                   (contexture--table
                    (mapcar #'car alist) 'contexture-set
                    (contexture-sets--annotate
                     alist
                     (lambda (set)
                       (format "%s, %s" (contexture--size (plist-get set :count)
                                                          (plist-get set :tokens))
                               (contexture-sets--age (plist-get set :created))))))
                   nil existing nil 'contexture-set-history))))
      (if (string-blank-p name)
          (user-error "No name was given")
        name))))

(defun contexture-sets--allow-spaces ()
  "Let space and question mark insert themselves in this minibuffer.
They may be part of names, which complete with TAB."
  (use-local-map
   (let ((map (make-sparse-keymap)))
     (define-key map " " #'self-insert-command)
     (define-key map "?" #'self-insert-command)
     (make-composed-keymap map (current-local-map)))))

;;;; Which context

;;;###autoload
(defun contexture-switch (context)
  "Make this buffer's commands work on the context named CONTEXT.
Interactively, an unknown name is an error if it is like one that exists;
else you are asked whether to begin a new context.  If CONTEXT is nil, or
with empty input or a prefix argument, `contexture-add-to' decides again."
  (interactive
   (progn (contexture-sets--check-buffer)
          (list (unless current-prefix-arg (contexture-sets--read-manager)))))
  (contexture-sets--check-buffer)
  (setq contexture-context
        (unless (or (null context) (string-blank-p context)) context))
  (when (bound-and-true-p contexture-mode)
    (contexture-mode -1)                ; its marks are those of the other context
    (contexture-mode 1))
  (force-mode-line-update)
  (contexture--message "Commands in this buffer now work on %s"
           (contexture--label (contexture-current-context))))

(defun contexture-sets--check-buffer ()
  "Signal an error in one of Contexture's own buffers."
  (when (string-prefix-p "*contexture: " (buffer-name))
    (user-error "This is one of Contexture's own buffers; switch in the buffer that you work on")))

(defun contexture-sets--read-manager ()
  "Read the name of a context, old or new.
The empty string stands for the usual context of this buffer."
  (let* ((usual (let ((contexture-context nil)) (contexture-current-context)))
         (entries (contexture-sets--managers))
         (alist (cl-mapcar (lambda (candidate entry) (cons (car candidate) entry))
                           (contexture--candidates entries) entries))
         (chosen
          (minibuffer-with-setup-hook #'contexture-sets--allow-spaces
            (completing-read (format-prompt "Work on context"
                                            (if (listp usual) (contexture--label usual)
                                              (contexture--visible usual)))
                             (contexture--table
                              (mapcar #'car alist) 'contexture-context
                              (contexture-sets--annotate
                               alist #'contexture-sets--manager-text))
                             nil nil nil 'contexture-context-history ""))))
    (or (plist-get (cdr (assoc chosen alist)) :manager)
        (plist-get (contexture--entry :manager chosen entries) :manager)
        (contexture-sets--new-manager
         chosen (append (mapcar #'car alist) (contexture--pluck :manager entries))))))

(defun contexture-sets--new-manager (name known)
  "Return NAME for a new context, if it is like none of the names KNOWN.
Signal an error that shows those that are like it, or if the user says no."
  (if (string-blank-p name) name
    (when-let* ((near (contexture-sets--near-names name known)))
      (contexture--user-error "No context is called %s; did you mean %s?" name
                              (string-join near " or ")))
    (unless (contexture--y-or-n-p
             (contexture--format "No context is called %s.  Begin it? " name))
      (user-error "No context was chosen"))
    name))

(defun contexture-sets--near-names (name known)
  "Return at most three of the names KNOWN that are like NAME, the nearest first."
  (let* ((name (downcase name))
         (near (cl-loop for other in (delete-dups (copy-sequence known))
                        for distance = (string-distance name (downcase other))
                        when (or (<= distance (max 1 (/ (length name) 3)))
                                 (and (> (length name) 2)
                                      (string-search name (downcase other))))
                        collect (cons distance other))))
    (seq-take (mapcar #'cdr (sort near (lambda (a b) (< (car a) (car b))))) 3)))

(defun contexture-sets--managers ()
  "Return the entries of all contexts, as plists.
Contexts of conversations, which may be empty, have the conversation's name,
too, under `:session'."
  (let ((managers (contexture--all-contexts)))
    (dolist (session (contexture--ask 'list-sessions nil) managers)
      (let ((name (plist-get session :manager))
            (label (list :session (plist-get session :session))))
        (if-let* ((manager (contexture--entry :manager name managers)))
            (nconc manager label)
          (setq managers
                (append managers
                        `((:manager ,name :count 0 :tokens 0 ,@label)))))))))

(defun contexture-sets--manager-text (entry)
  "Return the annotation of ENTRY, one of `contexture-sets--managers'."
  (concat (when-let* ((session (plist-get entry :session)))
            (format "conversation %s, " session))
          (contexture--size (plist-get entry :count) (plist-get entry :tokens))
          (when-let* ((newest (plist-get entry :newest)))
            (concat ", " (contexture-sets--age newest)))))

;;; What the model will see

;; `contexture-preview' shows a context as the Markdown that a model
;; gets, byte for byte, in a buffer that cannot be edited.

(defconst contexture-preview-buffer "*contexture: preview*"
  "Name of the buffer that shows a context as the model gets it.")

(defvar contexture-preview-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "q" #'quit-window)
    (define-key map "g" #'revert-buffer)
    (define-key map "l" #'contexture-list)
    (define-key map "w" #'contexture-copy)
    (define-key map "?" #'contexture-menu)
    (define-key map (kbd "SPC") #'scroll-up-command)
    (define-key map (kbd "DEL") #'scroll-down-command)
    map)
  "Keymap of `contexture-preview-mode'.")

(define-minor-mode contexture-preview-mode
  "Minor mode for viewing a context as the model gets it.
`contexture-preview' turns this on, in a Markdown mode if one is installed.

See Info node `(contexture)Preview'.

\\{contexture-preview-mode-map}"
  :lighter " Preview"
  (setq buffer-read-only contexture-preview-mode)
  (setq-local revert-buffer-function
              (if contexture-preview-mode #'contexture-preview--revert
                (default-value 'revert-buffer-function))))

;;;###autoload
(defun contexture-preview (context)
  "Show CONTEXT, a name or a list of names, as the model gets it.
By default this is all that this buffer sends; with a prefix argument, choose
a context.  If this buffer's context is empty, another one is offered.
`contexture-limit' limits what is shown."
  (interactive (list (contexture--manager-to-show current-prefix-arg)))
  (let ((rendered (contexture--ask 'render-items
                                   (contexture--render-params context)))
        (buffer (get-buffer-create contexture-preview-buffer)))
    (with-current-buffer buffer
      (contexture--choose-evil-state 'emacs t)
      (unless contexture-preview-mode
        (let ((inhibit-read-only t))
          ;; The text names the languages of its parts.
          (contexture--enter-mode
           (cl-find-if #'fboundp '(gfm-mode markdown-mode text-mode))))
        (when (eq major-mode 'text-mode)
          (setq-local outline-regexp "#+ "))
        (contexture-preview-mode))
      (add-hook 'kill-buffer-hook #'contexture-preview--unwatch nil t)
      (contexture-watch #'contexture-preview--changed)
      (setq contexture-context context)
      (contexture-preview--show rendered))
    (pop-to-buffer buffer)))

(defun contexture-preview--show (rendered)
  "Show RENDERED, a result of `render-items', keeping point's line."
  (let ((inhibit-read-only t)
        (line (line-number-at-pos)))
    (erase-buffer)
    (insert (plist-get rendered :text))
    (contexture--shorten-lines "sent")
    (contexture--show-hidden)
    (goto-char (contexture--line-position line))
    (set-buffer-modified-p nil)
    (setq header-line-format
          (contexture--header-line
           (contexture--capitalized (contexture--label-of-text contexture-context)) ", "
           (contexture--rendered-size rendered)))))

(defvar-local contexture-preview--updating nil
  "Non-nil while the context is rendered to be shown again.
The value is `outdated' if it has changed since.")

(defun contexture-preview--changed (method params)
  "Show the context again if METHOD with PARAMS says that it changed."
  (contexture--with-live-buffer (and (eq method 'context-changed)
                                     (get-buffer contexture-preview-buffer))
    (when (contexture--of-context-p (plist-get params :manager) contexture-context)
      (contexture-preview--update))))

(defun contexture-preview--update ()
  "Have the context rendered, and show it.
Until that is done, changes are only noted, so that many in a row cost two
renderings."
  (if contexture-preview--updating (setq contexture-preview--updating 'outdated)
    (setq contexture-preview--updating t)
    (let ((buffer (current-buffer)) (manager contexture-context))
      (cl-flet ((done (rendered)
                  (contexture--with-live-buffer buffer
                    (let ((outdated (eq 'outdated (cl-shiftf contexture-preview--updating nil))))
                      (when (and rendered (equal manager contexture-context))
                        (contexture-preview--show rendered))
                      (when outdated (contexture-preview--update))))))
        (contexture-request-async
         'render-items (contexture--render-params manager)
         :success #'done
         :error (lambda (problem)
                  (done nil)
                  (contexture-show-error problem)))))))

(defun contexture-preview--unwatch ()
  "Clean up when the preview is killed."
  (contexture-unwatch #'contexture-preview--changed))

(defun contexture-preview--revert (&rest _)
  "Fetch the context again and show it."
  (contexture-preview--show
   (contexture--ask 'render-items (contexture--render-params contexture-context))))

(provide 'contexture-list)
;;; contexture-list.el ends here
