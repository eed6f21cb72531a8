;;; contexture-dashboard.el --- How full a conversation is, and why  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-dashboard' shows a conversation while it grows, and
;; `contexture-explain' tells of one window what went into it, what did
;; not, and for which reason.  `contexture-dashboard-browse' shows all
;; conversations in a browser.

;;; Code:

(require 'button)
(require 'outline)
(require 'contexture-conversations)
(eval-when-compile (require 'subr-x))

(declare-function contexture-doctor--command "contexture-doctor")
(declare-function contexture-doctor--own-arguments "contexture-doctor")
(defvar contexture-conversation--items)
(defvar contexture-conversation--session)

;;; Sections that fold

;; The text of both buffers has sections with headings, which fold as those
;; of any outline do.  What is folded stays so when the text is replaced.

(defvar contexture-dashboard-heading-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "TAB") #'outline-cycle)
    (define-key map (kbd "<backtab>") #'outline-cycle-buffer)
    map)
  "Keymap of section headings.")

(defun contexture-dashboard--fold-sections (regexp)
  "Let the sections of this buffer fold; REGEXP matches their headings."
  (setq-local outline-regexp regexp
              outline-level (lambda () 1))
  (outline-minor-mode))

(defun contexture-dashboard--heading (text &rest more)
  "Return TEXT as a heading, followed by the strings MORE."
  (concat "\n" (propertize text 'face 'contexture-conversation-title
                           'contexture-section (intern text)
                           'keymap contexture-dashboard-heading-map)
          (and more "  ") (apply #'concat more) "\n"))

(defun contexture-dashboard--section-at (position)
  "Return (NAME . START) of the section at POSITION; NAME is nil before the first."
  (save-excursion
    (goto-char position)
    (condition-case nil
        (progn (outline-back-to-heading t)
               (cons (get-text-property (point) 'contexture-section) (point)))
      (outline-before-first-heading (cons nil (point-min))))))

(defun contexture-dashboard--folded ()
  "Return the names of the sections that are folded."
  (cl-loop for overlay in (overlays-in (point-min) (point-max))
           when (eq (overlay-get overlay 'invisible) 'outline)
           collect (car (contexture-dashboard--section-at (overlay-start overlay)))))

(defun contexture-dashboard--place (position)
  "Return the place of POSITION as a list (BUTTON SECTION LINE COLUMN).
BUTTON is the name of the button there, or nil; LINE counts from the
heading of the section."
  (let ((section (contexture-dashboard--section-at position)))
    (save-excursion
      (goto-char position)
      (list (when-let* ((button (button-at position)))
              (button-get button 'contexture-name))
            (car section)
            (count-lines (cdr section) (line-beginning-position))
            (- (point) (line-beginning-position))))))

(defun contexture-dashboard--position (place)
  "Return the position that PLACE has in the current text."
  (pcase-let ((`(,name ,section ,line ,column) place))
    (save-excursion
      (or (and name (contexture-dashboard--find name))
          (progn (goto-char (or (text-property-any (point-min) (point-max)
                                                   'contexture-section section)
                                (point-min)))
                 (forward-line line)
                 (min (+ (point) column) (line-end-position)))))))

(defun contexture-dashboard--replace (text)
  "Show TEXT in this buffer, keeping point, the windows and what is folded."
  (let ((places (mapcar (lambda (window)
                          (cons window
                                (contexture-dashboard--place (window-point window))))
                        (get-buffer-window-list nil nil t)))
        (place (contexture-dashboard--place (point)))
        (folded (contexture-dashboard--folded))
        (inhibit-read-only t))
    (erase-buffer)
    (insert text)
    (dolist (section folded)
      (when-let* ((heading (text-property-any (point-min) (point-max)
                                              'contexture-section section)))
        (goto-char heading)
        (outline-hide-subtree)))
    (goto-char (contexture-dashboard--position place))
    (pcase-dolist (`(,window . ,place) places)
      (set-window-point window (contexture-dashboard--position place)))))

;;; What the dashboard looks like

;; Makes the text of the dashboard from the server's answers.  Nothing
;; here calls the server or knows about windows and hooks.

(defface contexture-dashboard-bar '((t :inherit success))
  "Face of the bar that shows how full a conversation is."
  :group 'contexture-conversations)

(defface contexture-dashboard-button '((t :inherit link))
  "Face of buttons in the dashboard."
  :group 'contexture-conversations)

(defconst contexture-dashboard--bar-width 40
  "Width, in columns, of the bar that shows how full a conversation is.")

(defconst contexture-dashboard--parts 5
  "Maximum number of a section's parts to show; the largest are shown.")

;;;; Words

(defun contexture-dashboard--header (data stale)
  "Return the header line for DATA.
STALE, if non-nil, says why DATA may be out of date."
  (let ((session (plist-get data :session)))
    (contexture--header-line
     (concat
      (cond (session
             (format "Conversation %s: %s" (plist-get session :session)
                     (contexture-conversation-state (plist-get data :stats))))
            ((null data) "Asking the server...")
            ((plist-get data :gone) "This conversation was deleted")
            (t "No conversation is open"))
      (when stale (format "  (%s)" stale))))))

(defun contexture-dashboard--button (name label action help)
  "Return a button that shows LABEL and calls ACTION, a command.
NAME tells it apart from others; HELP says what it does."
  (with-temp-buffer
    (insert-text-button label 'action (lambda (_) (call-interactively action))
                        'contexture-name name 'follow-link t
                        'face 'contexture-dashboard-button 'help-echo help)
    (buffer-string)))

;;;; All of it

(defun contexture-dashboard--text (data)
  "Return the text of the dashboard for DATA."
  (setq data (contexture--visible-data data))
  (cond ((null data) "")
        ((plist-get data :gone) (contexture-dashboard--gone))
        ((null (plist-get data :session))
         (concat (contexture-dashboard--empty)
                 (contexture-dashboard--agents (plist-get data :agents))))
        (t (concat (contexture-dashboard--session data)
                   (contexture-dashboard--fullness data)
                   (contexture-dashboard--settings (plist-get data :settings))
                   (contexture-dashboard--warning (plist-get data :stats))
                   (contexture-dashboard--buttons data)
                   (contexture-dashboard--window data)
                   (contexture-dashboard--managing data)
                   (contexture-dashboard--checkpoints (plist-get data :checkpoints))
                   (contexture-dashboard--usage (plist-get data :stats))
                   (contexture-dashboard--agents (plist-get data :agents))))))

(defun contexture-dashboard--gone ()
  "Return the text of the dashboard when its conversation was deleted."
  (concat "This conversation was deleted; you can bring it back whole.\n\n  "
          (contexture-dashboard--button 'restore "[Bring it back]"
                                        #'contexture-conversation-bring-back
                                        "Bring a deleted conversation back")
          "  "
          (contexture-dashboard--button 'follow "[Show the current conversation]"
                                        #'contexture-dashboard-follow
                                        "f: follow the current conversation")
          "\n"))

(defun contexture-dashboard--empty ()
  "Return the text of the dashboard while no conversation is open."
  (concat "No conversation with a model is open.\n\n  "
          (contexture-dashboard--button 'open "[Open or begin a conversation]"
                                        #'contexture-conversation-open
                                        "Open a conversation, or begin one")
          "\n"))

;;;; The conversation

(defun contexture-dashboard--session (data)
  "Return the section on the contents of the conversation in DATA."
  (let* ((session (plist-get data :session))
         (stats (plist-get data :stats))
         (items (plist-get data :items))
         (log (or (plist-get stats :log) 0)))
    (concat
     (contexture-dashboard--row
      "Messages" (if (eql log (plist-get stats :items))
                     (contexture--number log)
                   (format "%s of %s" (contexture--number (plist-get stats :items))
                           (contexture--number log)))
      (contexture-dashboard--whereabouts stats))
     (contexture-dashboard--row
      "Turns" (contexture--number (plist-get stats :turns))
      (format "last changed %s"
              (contexture-conversations--time (plist-get session :updated))))
     (contexture-dashboard--row
      "Items" (contexture--number (length items))
      (format "%s, in %s"
              (contexture-conversations--many
               (contexture--tokens-to-send items) "token")
              (contexture-dashboard--managers items session))))))

(defun contexture-dashboard--managers (items session)
  "Return a phrase for the contexts that hold ITEMS, or else for SESSION's own."
  (mapconcat (lambda (name)
               (if (string-prefix-p "*session " name) "the conversation's own context"
                 (contexture--label name)))
             (or (plist-get session :managers)
                 (delete-dups (delq nil (contexture--pluck :manager items)))
                 (list (plist-get session :manager)))
             " and "))

(defun contexture-dashboard--whereabouts (stats)
  "Return a phrase that says where the messages counted in STATS are."
  (let* ((taken-back (apply #'- (plist-get stats :log)
                             (mapcar (lambda (key) (or (plist-get stats key) 0))
                                     '(:items :pruned :summarized))))
         (parts (cl-loop for (number . words)
                         in `((,(plist-get stats :pruned) . "left out")
                              (,(plist-get stats :summarized) . "shortened")
                              (,taken-back . "taken back")
                              (,(plist-get stats :pinned) . "pinned"))
                         when (> (or number 0) 0)
                         collect (format "%s %s" (contexture--number number)
                                         words))))
    (string-join (cons (if (eql (plist-get stats :items) (plist-get stats :log))
                           "all are sent"
                         "are sent")
                       parts)
                 ", ")))

(defun contexture-dashboard--row (name value &optional more)
  "Return a line that shows NAME with VALUE, and the phrase MORE."
  (concat (propertize (format "%-11s" name) 'face 'bold)
          (string-join
           (delete "" (list value (propertize (or more "") 'face 'shadow))) "  ")
          "\n"))

;;;; How full it is

(defun contexture-dashboard--fullness (data)
  "Return the lines on what the conversation in DATA would send now."
  (let* ((warning (plist-get (plist-get data :stats) :needs-pruning))
         (id (plist-get (plist-get data :session) :id))
         (count (contexture-count--of id))
         (most (plist-get count :max-tokens))
         (percent (and most (/ (* 100.0 (plist-get count :tokens)) most)))
         (face (if warning 'contexture-conversation-warning 'contexture-dashboard-bar)))
    (concat
     (contexture-dashboard--row
      "To send" (propertize (if count (contexture-count--text id) "counting...")
                            'face (if warning 'contexture-conversation-warning 'default))
      (string-join
       (delq nil
             (list (and (plist-get count :model)
                        (format "for %s" (plist-get count :model)))
                   (and count (not (plist-get count :exact)) "estimated")))
       ", "))
     (when percent
       (contexture-dashboard--row
        "Used" (concat (contexture-dashboard--bar percent face)
                       (propertize (format " %.1f %%" percent) 'face face)))))))

(defun contexture-dashboard--warning (stats)
  "Return a warning if STATS say that the window is nearly full, else \"\".
If the model is unknown, the warning names the limit that is assumed."
  (if (not (plist-get stats :needs-pruning)) ""
    (propertize (format (if (plist-get stats :model-known)
                            "\n! The history has %s tokens, more than 80 %% of the model's \
%s: shorten\n  it before the limit is reached (S).\n"
                          "\n! The history has %s tokens, more than 80 %% of %s, the \
limit assumed because\n  the model is unknown: shorten the history (S), or choose \
the model (C).\n")
                        (contexture--number (plist-get stats :tokens))
                        (contexture--number (plist-get stats :limit)))
                'face 'contexture-conversation-warning)))

(defun contexture-dashboard--bar (percent face)
  "Return a bar in FACE that is filled to PERCENT percent.
It is drawn with letters where the display has no block characters."
  (let* ((width contexture-dashboard--bar-width)
         (filled (min width (max (if (> percent 0) 1 0)
                                 (round (* width (/ percent 100.0))))))
         (blocks (char-displayable-p ?█)))
    (concat (propertize (make-string filled (if blocks ?█ ?#)) 'face face)
            (propertize (make-string (- width filled) (if blocks ?░ ?-))
                        'face 'shadow))))

(defun contexture-dashboard--buttons (data)
  "Return the buttons for the conversation in DATA."
  (concat
   "\n"
   (mapconcat
    (pcase-lambda (`(,name ,label ,command ,help))
      (contexture-dashboard--button name label command help))
    `((prune "[Leave out]" contexture-conversation-leave-out
             "P: leave out the least important messages")
      (summarize "[Shorten]" contexture-conversation-shorten
                 "S: shorten older messages to a summary")
      (checkpoint "[Name turn]" contexture-conversation-name-turn
                  "c: name this turn, to go back to it")
      ,@(when (plist-get data :checkpoints)
          '((rollback "[Go back]" contexture-dashboard-go-back
                      "b: go back to an earlier turn")))
      (undo "[Undo]" contexture-conversation-undo
            "u: undo the last leaving out, shortening or going back")
      (explain "[Explain]" contexture-explain
               "e: why each part was sent or not")
      (transcript "[Transcript]" contexture-conversation-transcript
                  "t: the whole conversation"))
    " ")
   "\n"))

(defun contexture-dashboard--settings (settings)
  "Return the line on the automatic steps of `process-turn', from SETTINGS.
SETTINGS is a result of `configure-session', or nil, which yields nil."
  (let* ((all (plist-get settings :settings))
         (value (lambda (name)
                  (plist-get (contexture--entry :name name all) :value)))
         (parts
          (delq nil
                (list
                 (when (funcall value :auto-summarize)
                   (let ((most (funcall value :max-tokens))
                         (ratio (funcall value :summarize-at-ratio)))
                     (cond ((null ratio) "summary when the window is full")
                           (most (format "summary above %s tokens"
                                         (contexture--number (truncate (* most ratio)))))
                           (t (format "summary above %d %% of the window"
                                      (round (* 100 ratio)))))))
                 (when (funcall value :auto-checkpoint)
                   (format "turn kept every %s"
                           (contexture--count
                            (funcall value :checkpoint-interval) "turn")))
                 (when (funcall value :auto-rollback)
                   (format "going back when rated below %.2f"
                           (funcall value :quality-threshold)))))))
    (when settings
      (contexture-dashboard--row
       "By itself" "" (concat (if parts (string-join parts ", ") "nothing")
                              " (C: settings)")))))

;;;; The last window

(defun contexture-dashboard--window (data)
  "Return the section on the last window of the conversation in DATA."
  (let ((report (car (plist-get (plist-get data :stats) :reports))))
    (if (null report)
        (concat (contexture-dashboard--heading "Last window")
                "  None has been built since the server started.\n")
      (concat
       (contexture-dashboard--heading
        "Last window"
        (format "%s; %s offered; %s"
                (contexture-count--phrase report)
                (contexture--number (plist-get report :tokens-before))
                (contexture-conversations--time (plist-get report :at))))
       (propertize (format "  %-24s %9s %9s\n" "Section" "Offered" "Taken")
                   'face 'shadow)
       (mapconcat (lambda (section)
                    (contexture-dashboard--section section report
                                                   (plist-get data :items)))
                  (plist-get report :sections) "")))))

(defun contexture-dashboard--section (section report items)
  "Return the lines of SECTION of REPORT; ITEMS are those of the conversation."
  (let* ((name (plist-get section :section))
         (parts (if (eq name :context-items)
                    (mapcar #'contexture-dashboard--item-part
                            ;; A covered item is sent as a part of another one.
                            (cl-remove-if (lambda (item) (plist-get item :covered-by)) items))
                  (contexture-dashboard--parts name report)))
         (chosen (seq-take (cl-sort (copy-sequence parts) #'>
                                    :key (lambda (part) (plist-get part :before)))
                           contexture-dashboard--parts))
         (largest (cl-remove-if-not (lambda (part) (memq part chosen)) parts))
         (rest (- (length parts) (length largest))))
    (concat
     (contexture-dashboard--counts
      2 (contexture--part-name name) (plist-get section :before) (plist-get section :after) "")
     (unless (and (null (cdr parts)) (equal (plist-get (car parts) :what)
                                            (contexture--name name)))
       (mapconcat (lambda (part)
                    (contexture-dashboard--counts
                     4 (contexture-dashboard--what part) (plist-get part :before)
                     (plist-get part :after) (plist-get part :reason)))
                  largest ""))
     (when (> rest 0)
       (propertize (format "    and %s\n" (contexture--count rest "smaller one"))
                   'face 'shadow)))))

(defun contexture-dashboard--parts (name report)
  "Return the parts of REPORT that belong to its section NAME."
  (cl-remove-if-not (lambda (part) (eq name (plist-get part :section)))
                    (plist-get report :parts)))

(defun contexture-dashboard--what (part)
  "Return the words for what PART of a report is."
  (let ((what (plist-get part :what))
        (section (plist-get part :section)))
    (if (and section (equal what (contexture--name section)))
        (contexture--part-name section)
      what)))

(defun contexture-dashboard--item-part (item)
  "Return ITEM of a context in the form of a part of a window."
  (list :what (contexture--description (plist-get item :metadata))
        :before (or (plist-get item :tokens) 0)
        :reason (if (plist-get item :pinned) "an item, pinned" "an item")))

(defun contexture-dashboard--counts (indent name before after reason)
  "Return a line that shows NAME, indented by INDENT, with its tokens.
BEFORE tokens were offered, and AFTER (nil if unknown) were taken, for
REASON."
  (concat (make-string indent ?\s)
          (contexture-conversations--fit name (- 26 indent)) " "
          (format "%9s %9s" (contexture--number before)
                  (cond ((null after) "")
                        ((= after 0) "-")
                        (t (contexture--number after))))
          (unless (string-empty-p reason)
            (concat "  " (propertize reason 'face 'shadow)))
          "\n"))

;;;; Turns and windows

(defun contexture-dashboard--checkpoints (checkpoints)
  "Return the section on CHECKPOINTS, which are in order, the newest first.
It has a button for each of the first eight."
  (concat
   (contexture-dashboard--heading "Turns to go back to")
   (if checkpoints "" "  None yet.\n")
   (mapconcat
    (lambda (checkpoint)
      (let ((id (plist-get checkpoint :checkpoint)))
        (concat "  "
                (contexture-dashboard--button
                 id (format "%-8s" (format "turn %s" (plist-get checkpoint :turn)))
                 (lambda () (interactive) (contexture-dashboard-go-back id))
                 "RET: go back to it; you are asked first")
                (format " %s  %s\n"
                        (contexture-conversations--time (plist-get checkpoint :created))
                        (plist-get checkpoint :message)))))
    (seq-take checkpoints 8) "")
   (when (nthcdr 8 checkpoints)
     (propertize (format "  and %d older\n" (- (length checkpoints) 8))
                 'face 'shadow))))

(defun contexture-dashboard--managing (data)
  "Return the section on the notes in DATA.
It is \"\" if there are no notes and none are being taken."
  (let ((settings (plist-get data :settings))
        (views (plist-get data :views)))
    (if (not (or views (plist-get settings :manage))) ""
      (concat
       (contexture-dashboard--heading
        "Notes" "  "
        (contexture-dashboard--button 'views "[All notes]" #'contexture-conversation-notes
                                      "V: the notes that stood for the history, turn by turn"))
       (format "  %s\n" (if (plist-get settings :manage)
                            (format "Notes are taken of the kind %s"
                                    (plist-get settings :template))
                          "The whole history is sent"))
       (mapconcat #'contexture-dashboard--view views "")))))

(defun contexture-dashboard--view (view)
  "Return a line for VIEW, the outcome of taking notes in one turn."
  (let* ((status (contexture--name (plist-get view :status)))
         (failed (equal status "failed"))
         (before (plist-get view :tokens-before))
         (after (plist-get view :tokens-after)))
    (propertize
     (format "  turn %-4s %-16s %-16s %s\n" (plist-get view :turn) status
             (or (plist-get view :template) "")
             (cond (failed (format "the whole history was sent: %s"
                                   (plist-get view :reason)))
                   ((and before after) (contexture-conversations--many-of before after))
                   (t "")))
     'face (if failed 'contexture-conversation-warning 'default))))

(defun contexture-dashboard--usage (stats)
  "Return the section on the last windows in STATS, the newest first."
  (let ((windows (reverse (plist-get stats :windows))))
    (if (null windows) ""
      (concat
       (contexture-dashboard--heading "Last windows" "in tokens")
       (propertize (format "  %-16s %9s %9s  %s\n" "Built" "Tokens" "Allowed" "Messages")
                   'face 'shadow)
       (mapconcat
        (lambda (it)
          (format "  %-16s %9s %9s  %8s\n"
                  (contexture-conversations--time (plist-get it :at))
                  (contexture--number (plist-get it :total))
                  (contexture--number (plist-get it :budget))
                  (contexture--number (plist-get it :messages))))
        windows "")))))

;;;; Agents

(defun contexture-dashboard--agents (agents)
  "Return the section on AGENTS, the result of `list-agents', or nil.
It is \"\" if no agent is known and no item waits for one."
  (let ((sessions (plist-get agents :sessions))
        (connected (plist-get agents :connected))
        (waiting (plist-get agents :waiting)))
    (if (not (or sessions connected waiting)) ""
      (concat
       (contexture-dashboard--heading "Agents")
       (when connected
         (format "  Connected: %s\n"
                 (mapconcat #'contexture-dashboard--connected-agent connected ", ")))
       (when waiting
         (format "  Waiting for the next prompt: %s\n"
                 (contexture--count (length waiting) "item")))
       (when sessions
         (propertize (format "  %-12s %-16s %-16s %-16s %6s %8s\n" "Agent" "Session"
                             "Project" "Given" "Items" "Tokens")
                     'face 'shadow))
       (mapconcat #'contexture-dashboard--agent-session sessions "")))))

(defun contexture-dashboard--connected-agent (agent)
  "Return a phrase for AGENT, which is connected: its name, version and project."
  (let ((version (plist-get agent :version))
        (project (plist-get agent :project)))
    (concat (plist-get agent :name)
            (unless (equal version "") (concat " " version))
            (unless (equal project "")
              (format " (%s)" (contexture--last-name project))))))

(defun contexture-dashboard--agent-session (session)
  "Return a line for SESSION of an agent, an element of `list-agents'.
It shows when the session was last given something, how many items it has,
and the tokens that it was last given."
  (let ((at (plist-get session :at))
        (tokens (plist-get session :tokens)))
    (format "  %s %s %s %-16s %6s %8s\n"
            (contexture-conversations--fit (plist-get session :agent) 12)
            (contexture-conversations--fit (plist-get session :agent-session) 16)
            (contexture-conversations--fit
             (contexture--last-name (plist-get session :project)) 16)
            (if (> at 0) (contexture-conversations--time at) "")
            (contexture--number (plist-get session :count))
            (if (> tokens 0) (contexture--number tokens) ""))))

;;; How full a conversation is

;; `contexture-dashboard' shows a conversation while it grows: how much of its
;; model's window it fills, what the last windows were made of, how good
;; its context is, its checkpoints, and buttons for the usual commands.
;;
;; The dashboard is redrawn when the server reports a change, never at
;; fixed times.  While no window shows it, it gets no notifications and has
;; no global hooks.

(defconst contexture-dashboard-buffer "*contexture: dashboard*"
  "Name of the buffer that shows how full a conversation is.")

(defconst contexture-dashboard--pause 0.2
  "Minimum number of seconds between two updates of the dashboard.")

(defvar-local contexture-dashboard--data nil
  "Data shown, a plist of the server's answers by name.")

(defvar-local contexture-dashboard--updating nil
  "Non-nil during an update; `again' if the conversation changed meanwhile.")

(defvar-local contexture-dashboard--timer nil
  "The timer that ends the pause between two updates, or nil.")

(defvar-local contexture-dashboard--updated nil
  "Time at which the last update began.")

(defvar-local contexture-dashboard--stale nil
  "Reason why the data may be out of date, a string, or nil.")

(defvar-local contexture-dashboard--fixed nil
  "Id of the conversation that the user chose; nil to follow the current one.")

(defvar contexture-dashboard-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "n" #'contexture-dashboard-next)
    (define-key map "p" #'contexture-dashboard-previous)
    (define-key map (kbd "TAB") #'contexture-dashboard-next)
    (define-key map (kbd "<backtab>") #'contexture-dashboard-previous)
    (define-key map (kbd "RET") #'contexture-dashboard-act)
    (define-key map (kbd "M-n") #'outline-next-visible-heading)
    (define-key map (kbd "M-p") #'outline-previous-visible-heading)
    (define-key map "P" #'contexture-conversation-leave-out)
    (define-key map "S" #'contexture-conversation-shorten)
    (define-key map "c" #'contexture-conversation-name-turn)
    (define-key map "b" #'contexture-dashboard-go-back)
    (define-key map "u" #'contexture-conversation-undo)
    (define-key map "U" #'contexture-conversation-redo)
    (define-key map "e" #'contexture-explain)
    (define-key map "V" #'contexture-conversation-notes)
    (define-key map "t" #'contexture-conversation-transcript)
    (define-key map "a" #'contexture-conversation-add-message)
    (define-key map "C" #'contexture-conversation-set)
    (define-key map "o" #'contexture-conversation-open)
    (define-key map "s" #'contexture-dashboard-switch)
    (define-key map "f" #'contexture-dashboard-follow)
    (define-key map "w" #'contexture-dashboard-browse)
    (define-key map "?" #'describe-mode)
    map)
  "Keymap of `contexture-dashboard-mode'.")

(put 'contexture-dashboard-next :advertised-binding "n")

(define-derived-mode contexture-dashboard-mode special-mode "Dashboard"
  "Major mode for showing how full a conversation is.
\\<contexture-dashboard-mode-map>\
\\[contexture-dashboard-next] and \\[contexture-dashboard-previous] go from \
button to button, \\[contexture-dashboard-act] presses the one at point.
On a heading, \\<contexture-dashboard-heading-map>\\[outline-cycle] folds its section, and \\[outline-cycle-buffer] folds all;
\\<contexture-dashboard-mode-map>\\[outline-next-visible-heading] and \\[outline-previous-visible-heading] go from heading to heading.
The dashboard updates itself; \\[revert-buffer] updates it at once.

See Info node `(contexture)In Emacs'.

\\{contexture-dashboard-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq-local truncate-lines t
              revert-buffer-function #'contexture-dashboard--revert)
  (contexture-dashboard--fold-sections
   "\\(?:Agents\\|Turns to go back to\\|Last windows?\\|Notes\\)\\(?:  \\|$\\)")
  (contexture--show-tool-bar '("open" contexture-conversation-open "Open")
                             '("save" contexture-conversation-name-turn "Name turn")
                             '("cut" contexture-conversation-leave-out "Leave out")
                             '("undo" contexture-conversation-undo "Undo")
                             '("info" contexture-explain "Explain")
                             '("refresh" revert-buffer "Refresh"))
  (add-hook 'window-buffer-change-functions #'contexture-dashboard--shown-again nil t)
  (add-hook 'kill-buffer-hook #'contexture-dashboard--stop nil t)
  (add-hook 'change-major-mode-hook #'contexture-dashboard--stop nil t))

;;;###autoload
(defun contexture-dashboard (&optional conversation)
  "Show how full the current conversation is, and keep the figures up to date.
With a prefix argument, choose a conversation and keep showing it, even when
another becomes the current one.  In a buffer that shows a conversation,
show that one.  CONVERSATION is the id of the conversation."
  (interactive (list (if current-prefix-arg
                         (contexture-conversations--id
                          (contexture-conversations--read "Dashboard of"))
                       (if (derived-mode-p 'contexture-dashboard-mode)
                           contexture-dashboard--fixed
                         (contexture-conversations--here)))))
  (pop-to-buffer (get-buffer-create contexture-dashboard-buffer))
  (unless (derived-mode-p 'contexture-dashboard-mode)
    (contexture-dashboard-mode))
  (contexture-dashboard--choose conversation)
  (contexture-dashboard--start))

(defun contexture-dashboard--choose (session)
  "Show SESSION, an id, from now on; nil means follow the current one."
  (unless (and contexture-dashboard--data
               (equal session contexture-dashboard--fixed))
    (setq contexture-dashboard--fixed session
          contexture-conversations--shown session
          contexture-dashboard--data nil)))

(defun contexture-dashboard-switch (conversation)
  "Show a conversation in the dashboard, and make it the current one.
CONVERSATION is its id."
  (interactive (list (contexture-conversations--id
                      (contexture-conversations--read "Switch to conversation"))))
  (contexture-dashboard--choose nil)
  (contexture-conversation-make-current conversation))

;;;; Only while it is shown

(defun contexture-dashboard--start ()
  "Follow the conversation, and show its state."
  (contexture-watch #'contexture-dashboard--changed
                    (append '(agents-changed management-failed window-built)
                            contexture-conversations--topics))
  (add-hook 'contexture-connected-hook #'contexture-dashboard--connected)
  (add-hook 'contexture-disconnected-hook #'contexture-dashboard--disconnected)
  (add-hook 'window-state-change-hook #'contexture-dashboard--windows-changed)
  (contexture-dashboard--update))

(defun contexture-dashboard--stop ()
  "Stop following the conversation, and clean up."
  (contexture-unwatch #'contexture-dashboard--changed)
  (remove-hook 'contexture-connected-hook #'contexture-dashboard--connected)
  (remove-hook 'contexture-disconnected-hook #'contexture-dashboard--disconnected)
  (remove-hook 'window-state-change-hook #'contexture-dashboard--windows-changed)
  (contexture--with-live-buffer (get-buffer contexture-dashboard-buffer)
    (contexture-count--unfollow (current-buffer))
    (when contexture-dashboard--timer
      (cancel-timer contexture-dashboard--timer)
      (setq contexture-dashboard--timer nil))))

(defun contexture-dashboard--following-p ()
  "Return non-nil if the dashboard follows changes."
  (memq #'contexture-dashboard--changed contexture-notification-functions))

(defun contexture-dashboard--windows-changed ()
  "Stop following if no window shows the dashboard any more."
  (unless (get-buffer-window contexture-dashboard-buffer t)
    (contexture-dashboard--stop)))

(defun contexture-dashboard--shown-again (_window)
  "Follow the conversation again, if the dashboard was hidden."
  (unless (contexture-dashboard--following-p)
    (contexture--with-live-buffer (get-buffer contexture-dashboard-buffer)
      (contexture-dashboard--start))))

;;;; What happens

(defun contexture-dashboard--changed (method params)
  "Update the dashboard if METHOD and PARAMS concern what it shows."
  (contexture--with-live-buffer (get-buffer contexture-dashboard-buffer)
    (when (contexture-dashboard--concerns-p method params)
      (contexture-dashboard--update))))

(defun contexture-dashboard--concerns-p (method params)
  "Return non-nil if METHOD with PARAMS concerns what this buffer shows.
Unless the user chose a conversation, that includes news that another one
has become the current one."
  (pcase method
    ('agents-changed t)
    ('context-changed
     (contexture--of-context-p
      (plist-get params :manager)
      (contexture-dashboard--context (plist-get contexture-dashboard--data :session))))
    (_
     (or (equal (plist-get params :session-id) contexture-conversations--shown)
         (and (not contexture-dashboard--fixed)
              (or (null contexture-conversations--shown)
                  (member (plist-get params :method)
                          '("open-session" "import-session"))))))))

(defun contexture-dashboard--connected ()
  "Update from the server that was just connected."
  (contexture--with-live-buffer (get-buffer contexture-dashboard-buffer)
    (contexture-dashboard--update)))

(defun contexture-dashboard--disconnected ()
  "Show that the data may be out of date."
  (contexture--with-live-buffer (get-buffer contexture-dashboard-buffer)
    (setq contexture-dashboard--stale "the server cannot be reached")
    (contexture-dashboard--draw)))

(defun contexture-dashboard--revert (&rest _)
  "Update the dashboard at once."
  (setq contexture-dashboard--updated nil)
  (when contexture-dashboard--updating
    (message "%s" contexture--waiting))
  (contexture-dashboard--start))

;;;; Updating

(defun contexture-dashboard--update ()
  "Ask the server about the conversation, and show the answer.
During an update, or just after one, only note to update again."
  (cond (contexture-dashboard--updating
         (setq contexture-dashboard--updating 'again))
        (contexture-dashboard--timer)
        ((and contexture-dashboard--updated
              (< 0 (- (float-time) contexture-dashboard--updated)
                 contexture-dashboard--pause))
         (setq contexture-dashboard--timer
               (run-at-time contexture-dashboard--pause nil
                            #'contexture-dashboard--pause-over (current-buffer))))
        (t
         (setq contexture-dashboard--updating t
               contexture-dashboard--updated (float-time))
         (unless contexture-dashboard--data
           (contexture-dashboard--draw))
         (contexture-dashboard--ask-session (current-buffer)))))

(defun contexture-dashboard--pause-over (buffer)
  "Update BUFFER now that its pause is over."
  (contexture--with-live-buffer buffer
    (setq contexture-dashboard--timer nil
          contexture-dashboard--updated nil)
    (contexture-dashboard--update)))

(defun contexture-dashboard--ask-session (buffer)
  "Find the conversation that BUFFER shows, then ask the server about it."
  (let ((fixed contexture-dashboard--fixed))
    (contexture-request-async
     'list-sessions (unless fixed '(:current t))
     :success
     (lambda (sessions)
       (cond (fixed (contexture-dashboard--ask
                     buffer (contexture--entry :id fixed sessions)))
             (sessions (contexture-dashboard--ask buffer (car sessions)))
             (t (contexture-dashboard--ask-agents buffer))))
     :error (lambda (problem) (contexture-dashboard--fail buffer problem)))))

(defun contexture-dashboard--ask-agents (buffer)
  "Ask about agents alone, as no conversation is open; show the answer in BUFFER."
  (cl-flet ((finish (agents)
              (contexture-dashboard--finish buffer (list :session nil :agents agents))))
    (contexture-request-async
     'list-agents '(:limit 8 :brief t)
     :success #'finish
     :error (lambda (_) (finish nil)))))

(defun contexture-dashboard--questions (session)
  "Return the calls about SESSION, each as (NAME METHOD . PARAMS).
NAME is the key of the answer in `contexture-dashboard--data'."
  (let ((params (list :session (plist-get session :id))))
    `((:stats session-report ,@params :reports 1 :windows 5)
      (:settings configure-session ,@params)
      (:checkpoints list-operations ,@params :checkpoints t)
      (:views list-notes ,@params :limit 5 :brief t)
      (:agents list-agents :limit 8 :brief t)
      (:items list-items
              ,@(contexture--context-params (contexture-dashboard--context session))
              :brief t))))

(defun contexture-dashboard--context (session)
  "Return the context or the layers whose items SESSION shows."
  (or (plist-get session :managers) (plist-get session :manager)))

(defun contexture-dashboard--ask (buffer session)
  "Ask everything about SESSION, and show the answers in BUFFER.
SESSION is an entry from the server, or nil if it was deleted."
  (if (null session)
      (contexture-dashboard--finish buffer '(:session nil :gone t))
    (let* ((questions (contexture-dashboard--questions session))
           (left (length questions))
           (data (list :session session))
           failure)
      (cl-flet ((answered ()
                  (when (= 0 (cl-decf left))
                    (if failure
                        (contexture-dashboard--fail buffer failure)
                      (contexture-dashboard--finish buffer data)))))
        (pcase-dolist (`(,name ,method . ,params) questions)
          (contexture-request-async
           method params
           :success (lambda (result)
                      (setq data (plist-put data name result))
                      (answered))
           :error (lambda (problem)
                    (setq failure problem)
                    (answered))))))))

(defun contexture-dashboard--finish (buffer data)
  "Show DATA in BUFFER; ask again if something changed meanwhile."
  (contexture--with-live-buffer buffer
    (setq contexture-dashboard--data data
          contexture-dashboard--stale nil)
    (unless contexture-dashboard--fixed
      (setq contexture-conversations--shown (plist-get (plist-get data :session) :id)))
    (let ((id (plist-get (plist-get data :session) :id)))
      ;; What it would send is counted while the dashboard is shown.
      (if (and id (contexture-dashboard--following-p))
          (contexture-count--follow id (current-buffer) #'contexture-dashboard--draw)
        (contexture-count--unfollow (current-buffer))))
    ;; Else what cannot be drawn would end all updates.
    (unwind-protect (contexture-dashboard--draw)
      (contexture-dashboard--settle))))

(defun contexture-dashboard--fail (buffer problem)
  "Show in BUFFER that PROBLEM prevented its update."
  (contexture--with-live-buffer buffer
    (setq contexture-dashboard--stale (contexture-conversations--error-text problem))
    (contexture-dashboard--draw)
    (contexture-dashboard--settle)))

(defun contexture-dashboard--settle ()
  "End an update, and begin the next if something changed meanwhile."
  (let ((again (eq contexture-dashboard--updating 'again)))
    (setq contexture-dashboard--updating nil)
    (when (and again (contexture-dashboard--following-p))
      (contexture-dashboard--update))))

;;;; Drawing

(defun contexture-dashboard--draw ()
  "Show this buffer's data, keeping point and the windows in place."
  (setq header-line-format
        (contexture-dashboard--header contexture-dashboard--data
                                      contexture-dashboard--stale))
  (let ((text (contexture-dashboard--text contexture-dashboard--data)))
    (unless (string= text (buffer-string))
      (contexture-dashboard--replace text))))

(defun contexture-dashboard--find (name)
  "Return the position of the button NAME, or nil."
  (let ((button (next-button (point-min) t)))
    (while (and button (not (equal name (button-get button 'contexture-name))))
      (setq button (next-button (button-end button))))
    (and button (button-start button))))

;;;; Commands

(defun contexture-dashboard-follow ()
  "Follow the current conversation instead of a chosen one."
  (interactive)
  (contexture-dashboard--choose nil)
  (contexture-dashboard--revert))

(defun contexture-dashboard-next (&optional count)
  "Go to the next button that is not folded away, or COUNT buttons on."
  (interactive "p")
  (let ((step (if (< (or count 1) 0) -1 1)))
    (dotimes (_ (abs (or count 1)))
      (cl-loop with start = (point)
               do (forward-button step t t)
               while (and (invisible-p (point)) (/= (point) start))))))

(defun contexture-dashboard-previous (&optional count)
  "Go to the previous button that is not folded away, or COUNT buttons back."
  (interactive "p")
  (contexture-dashboard-next (- (or count 1))))

(defun contexture-dashboard-act ()
  "Press the button at point, or the first one on its line."
  (interactive)
  (let ((button (or (button-at (point)) (next-button (line-beginning-position) t))))
    (if (and button (<= (button-start button) (line-end-position)))
        (push-button (button-start button))
      (user-error "There is no button here; n goes to the next"))))

(defun contexture-dashboard-go-back (&optional turn)
  "Ask for a turn of the conversation, and go back to it.
TURN, an id, is the default."
  (interactive)
  (let ((checkpoints (or (plist-get contexture-dashboard--data :checkpoints)
                         (user-error "There is no turn to go back to yet; c names one")))
        (stats (plist-get contexture-dashboard--data :stats)))
    (contexture-conversation-go-back
     (contexture-conversations--choose-checkpoint
      "Go back to" checkpoints (plist-get stats :turns) turn))))

;;; Why a window is as it is

;; `contexture-explain' shows the report of a window of a conversation: what
;; each section has in it, what was left out, why, and at what cost.
;; Neighbours with the same outcome share a line; opening a line fetches
;; its messages and their scores.

(defface contexture-explain-kept '((t :inherit success))
  "Face of the mark for a part that is in a window."
  :group 'contexture-conversations)

(defface contexture-explain-shortened '((t :inherit warning))
  "Face of the mark for a part that is shortened in a window."
  :group 'contexture-conversations)

(defface contexture-explain-dropped '((t :inherit error))
  "Face of the mark for a part that was left out of a window."
  :group 'contexture-conversations)

(defconst contexture-explain-buffer "*contexture: explain*"
  "Name of the buffer that shows why a window is as it is.")

(defconst contexture-explain--most 200
  "Maximum number of messages of one line whose texts are fetched.
If there are more, only the text of the first is.")

(defvar-local contexture-explain--back 1
  "Number of the window that is shown; 1 is the last one.")

(defvar-local contexture-explain--reports nil
  "Reports of the last windows, back to the one shown, the newest first.")

(defvar contexture-explain-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "TAB") #'contexture-explain-toggle)
    (define-key map (kbd "RET") #'contexture-explain-visit)
    (define-key map [mouse-2] #'contexture-explain-visit)
    (define-key map [follow-link] 'mouse-face)
    (define-key map "r" #'contexture-explain-restore)
    (define-key map "P" #'contexture-explain-pin)
    (define-key map "n" #'contexture-explain-next)
    (define-key map "p" #'contexture-explain-previous)
    (define-key map (kbd "M-n") #'outline-next-visible-heading)
    (define-key map (kbd "M-p") #'outline-previous-visible-heading)
    (define-key map "[" #'contexture-explain-older)
    (define-key map "]" #'contexture-explain-newer)
    (define-key map "v" #'contexture-dashboard)
    (define-key map "?" #'describe-mode)
    map)
  "Keymap of `contexture-explain-mode'.")

(define-derived-mode contexture-explain-mode special-mode "Explain"
  "Major mode for the report of a window.
\\<contexture-explain-mode-map>\
\\[contexture-explain-toggle] opens a line to show its messages and their scores.
\\[contexture-explain-visit] shows the text of the messages.
\\[contexture-explain-restore] brings them back with the next question, and \\[contexture-explain-pin] keeps them for good.
On a heading, \\<contexture-dashboard-heading-map>\\[outline-cycle] folds its section, and \\[outline-cycle-buffer] folds all;
\\<contexture-explain-mode-map>\\[outline-next-visible-heading] and \\[outline-previous-visible-heading] go from heading to heading.
\\[contexture-explain-older] and \\[contexture-explain-newer] go to the \
previous and the next window,
\\[revert-buffer] fetches the last window again.

In front of each line, + means in the window, ~ in part, - left out, and
r that the next question brings the messages back.

See Info node `(contexture)Why sent'.

\\{contexture-explain-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq-local truncate-lines t
              revert-buffer-function (lambda (&rest _) (contexture-explain--go 1)))
  (contexture-dashboard--fold-sections "[a-z][a-z-]*  [0-9]"))

;;;###autoload
(defun contexture-explain (&optional back conversation)
  "Show why each part of what was sent last was in or out.
With a prefix argument BACK, count back that many windows: 2 is the one
before the last.  CONVERSATION, the id of a conversation, defaults to that of
this buffer, or else to the current one."
  (interactive (list (prefix-numeric-value current-prefix-arg)))
  (when (and back (< back 1))
    (user-error "The number of a window is 1 or more; 1 is the last window"))
  (contexture-explain--fetch (or back 1) (or conversation (contexture-conversations--here)) nil))

(defun contexture-explain--fetch (back session buffer)
  "Fetch the report of window number BACK of SESSION, an id or nil, and show it.
Show it in BUFFER or, if that is nil, pop to the buffer for reports."
  (contexture-conversations--call
   'session-report (contexture--plist :session session :reports back)
   (contexture-explain--of-reports
    (lambda (reports)
      (cond ((null reports)
             (message "No window of this conversation has been built since the \
server started; ask something first"))
            ((and buffer (not (buffer-live-p buffer))))
            ((< (length reports) back)
             (contexture--message "Only %s known"
                      (if (cdr reports) (format "%d windows are" (length reports))
                        "the last window is")))
            (t
             (unless buffer
               (pop-to-buffer (get-buffer-create contexture-explain-buffer)))
             (with-current-buffer (or buffer contexture-explain-buffer)
               (contexture-explain--show back session reports)
               (unless buffer
                 (goto-char (point-min))
                 (contexture-explain-next)))))))))

(defun contexture-explain--of-reports (then)
  "Return a function that calls THEN with the reports in a `session-report'.
The newest comes first, and each has the name of the session."
  (lambda (answer)
    (funcall then (mapcar (lambda (it) (cl-list* :session (plist-get answer :session) it))
                          (reverse (plist-get answer :reports))))))

(defun contexture-explain--show (back session reports)
  "Show the report of window number BACK of SESSION; it is one of REPORTS."
  (unless (derived-mode-p 'contexture-explain-mode)
    (contexture-explain-mode))
  (let ((report (nth (1- back) reports)))
    (setq contexture-explain--back back
          contexture-explain--reports reports
          contexture-conversations--shown session
          header-line-format
          (contexture--header-line
           (format "%s of conversation %s, %s"
                   (pcase back
                     (1 "The last window")
                     (2 "The window before the last")
                     (_ (format "Window %d before the last" (1- back))))
                   (plist-get report :session)
                   (contexture-conversations--time (plist-get report :at)))))
    (contexture-dashboard--replace
     (mapconcat (lambda (text) (contexture--visible text t))
                (cons (contexture-explain--summary (contexture--visible-data report))
                      (mapcar (lambda (section)
                                (contexture-explain--section section report))
                              (plist-get report :sections)))
                ""))))

;;;; The report

(defun contexture-explain--summary (report)
  "Return the summary of the window of REPORT."
  (concat
   (contexture-dashboard--row
    "Sent" (format "%s; %s were offered%s"
                     (contexture-count--phrase report)
                     (contexture--number (plist-get report :tokens-before))
                     (if (plist-get report :exact) "" " (estimated)")))
   (contexture-dashboard--row
    "Chosen" (let ((strategy (contexture--name (plist-get report :strategy))))
               (alist-get strategy contexture--strategies strategy nil #'equal)))
   (contexture-dashboard--row
    "Stable" (contexture-explain--stable (plist-get report :stable)))
   (when-let* ((missing (plist-get report :missing)))
     (contexture-dashboard--row
      "Missing" (format "%s, which this work needs"
                        (mapconcat #'contexture--part-name missing ", "))))
   (contexture-dashboard--row "Left out" (contexture-explain--first-out report))
   (when-let* ((items (contexture-explain--items report)))
     (contexture-dashboard--row "Items" items))
   (propertize (format "\n  %-18s %13s %11s  %s\n" "Part" "Tokens" "Score" "Why")
               'face 'shadow)))

(defun contexture-explain--stable (stable)
  "Return a phrase for STABLE, the start that a window shares with the one before."
  (let ((bytes (plist-get stable :bytes))
        (first (plist-get stable :first-difference)))
    (cond ((null stable) "there is no earlier window to compare with")
          ((null first) (format "the same as the window before, %s"
                                (contexture-conversations--many bytes "byte")))
          (t (format "%s (%s) as before; first changed byte %s%s"
                     (contexture-conversations--many bytes "byte")
                     (contexture-conversations--many (plist-get stable :tokens) "token")
                     (contexture--number first)
                     (if-let* ((section (plist-get stable :section)))
                         (concat ", in " (contexture--part-name section))
                       ", where this window ends"))))))

(defun contexture-explain--first-out (report)
  "Return a phrase for the parts left out of the window of REPORT.
If the strategy scores, the parts with the lowest scores come first."
  (let* ((out (cl-remove-if-not (lambda (part) (eq (plist-get part :fate) :dropped))
                                (plist-get report :parts)))
         (score (lambda (part) (or (plist-get part :lowest-score) 0)))
         (sorted (cl-stable-sort (copy-sequence out) #'< :key score))
         (units (cl-loop for part in out sum (or (plist-get part :units) 1))))
    (if (null out) "nothing"
      (format "%s; first %s%s" (contexture--count units "part")
              (mapconcat (lambda (part)
                           (concat (contexture-dashboard--what part)
                                   (when (plist-get part :lowest-score)
                                     (format " (%s)" (contexture-explain--score
                                                      (plist-get part :lowest-score))))))
                         (seq-take sorted 3) ", ")
              (if (nthcdr 3 sorted) ", ..." "")))))

(defun contexture-explain--items (report)
  "Return a phrase for the items not whole in the window of REPORT, or nil."
  (let ((items (cl-remove-if (lambda (item) (eq (plist-get item :fate) :kept))
                             (plist-get report :items)))
        (names (contexture-explain--names (plist-get report :session))))
    (and items
         (format "%s not whole: %s%s" (contexture--count (length items) "item")
                 (mapconcat (lambda (item)
                              (format "%s %s, %s"
                                      (funcall names (plist-get item :id))
                                      (contexture--name (plist-get item :fate))
                                      (plist-get item :reason)))
                            (seq-take items 5) "; ")
                 (if (nthcdr 5 items) "; ..." "")))))

(defun contexture-explain--names (session)
  "Return a function that takes the id of an item and returns words for it.
They are the id and, if a dashboard or conversation buffer of SESSION, a
name, has the item, the item's name."
  (let ((known (cl-some
                (lambda (buffer)
                  (with-current-buffer buffer
                    (let ((data contexture-dashboard--data)
                          (shown (bound-and-true-p contexture-conversation--session)))
                      (cond ((equal session (plist-get shown :session))
                             (bound-and-true-p contexture-conversation--items))
                            ((equal session (plist-get (plist-get data :session)
                                                       :session))
                             (plist-get data :items))))))
                (buffer-list))))
    (lambda (id)
      ;; Layers number their items apart, so an id may stand for several.
      (pcase (cl-remove id known :test-not #'equal
                        :key (lambda (item) (plist-get item :id)))
        (`(,item) (format "%s (%s)" id (contexture--description
                                        (plist-get item :metadata))))
        (_ id)))))

(defun contexture-explain--score (number)
  "Return NUMBER, a score, as text with as many digits as it needs."
  (format (if (< (abs number) 10) "%.2f" "%.0f") number))

(defun contexture-explain--section (section report)
  "Return the lines of SECTION of REPORT."
  (let ((name (plist-get section :section)))
    (concat
     (contexture-dashboard--heading
      (contexture--part-name name)
      (contexture-conversations--many-of (plist-get section :before) (plist-get section :after)))
     (mapconcat #'contexture-explain--line
                (contexture-dashboard--parts name report) ""))))

(defun contexture-explain--line (part)
  "Return the line of PART, which stands for neighbours with the same outcome."
  (let ((shown (contexture--visible-data part))
        (scores (mapcar #'contexture-explain--score
                        (delq nil (list (plist-get part :lowest-score)
                                        (plist-get part :highest-score))))))
    (propertize
     (concat (contexture-explain--mark part) " "
             (contexture-conversations--fit (contexture-dashboard--what shown) 18) " "
             (format "%13s " (contexture-explain--tokens part))
             (propertize (format "%11s  " (string-join (delete-dups scores) "–"))
                         'face 'shadow)
             (plist-get shown :reason)
             "\n")
     'contexture-explain-part part
     'mouse-face 'highlight
     'help-echo "TAB: open it; RET: show its text")))

(defun contexture-explain--mark (part)
  "Return the mark for the outcome of PART."
  (pcase (cond ((contexture-explain--restored-p part) :restored)
               ;; A note has lines of it.
               ((and (eq (plist-get part :fate) :dropped) (< 0 (or (plist-get part :after) 0)))
                :shortened)
               (t (plist-get part :fate)))
    (:restored (propertize "r" 'face 'contexture-explain-shortened))
    (:kept (propertize "+" 'face 'contexture-explain-kept))
    (:shortened (propertize "~" 'face 'contexture-explain-shortened))
    (_ (propertize "-" 'face 'contexture-explain-dropped))))

(defun contexture-explain--tokens (part)
  "Return the tokens of PART, and what is left of them if that differs."
  (let ((before (plist-get part :before))
        (after (plist-get part :after)))
    (if (eql before after)
        (contexture--number before)
      (format "%s → %s" (contexture--number before)
              (contexture--number after)))))

;;;; Moving

(defun contexture-explain--part ()
  "Return the part of the line at point; signal an error if there is none."
  (or (get-text-property (point) 'contexture-explain-part)
      (user-error "This line shows no part of the model's window; n goes to the next")))

(defun contexture-explain-next (&optional count)
  "Go to the next part of the window, or COUNT parts on."
  (interactive "p")
  (contexture-explain--move (or count 1) 1))

(defun contexture-explain-previous (&optional count)
  "Go to the previous part of the window, or COUNT parts back."
  (interactive "p")
  (contexture-explain--move (or count 1) -1))

(defun contexture-explain--move (count direction)
  "Move by COUNT parts in DIRECTION, 1 or -1."
  (dotimes (_ count)
    (when-let* ((place (save-excursion
                         (cl-loop while (and (= 0 (forward-line direction)) (not (eobp)))
                                  when (and (get-text-property (point) 'contexture-explain-part)
                                            (not (invisible-p (point))))
                                  return (point)))))
      (goto-char place))))

(defun contexture-explain-older ()
  "Show the window that was built before this one."
  (interactive)
  (contexture-explain--go (1+ contexture-explain--back)))

(defun contexture-explain-newer ()
  "Show the window that was built after this one."
  (interactive)
  (when (= contexture-explain--back 1)
    (user-error "This is the last window"))
  (contexture-explain--go (1- contexture-explain--back)))

(defun contexture-explain--go (back)
  "Show the report of window number BACK of the same conversation."
  (contexture-explain--fetch back contexture-conversations--shown (current-buffer)))

;;;; Opening a line

(defun contexture-explain--messages (part)
  "Return parameters that choose the messages of PART, or nil if it has none."
  (let ((what (plist-get part :what)))
    (cond ((plist-get part :ids) (list :ids (plist-get part :ids)))
          ((string-match "\\`\\(msg-[0-9]+\\)…\\(msg-[0-9]+\\)\\'" what)
           (list :from (match-string 1 what) :to (match-string 2 what)))
          ((string-match-p "\\`msg-[0-9]+\\'" what) (list :ids (list what))))))

(defun contexture-explain-visit (&optional event)
  "Show the text of the messages of the line at point, or where EVENT is."
  (interactive (list last-nonmenu-event))
  (when (mouse-event-p event)
    (mouse-set-point event))
  (let ((part (contexture-explain--part)))
    (contexture-conversations--show-messages
     (plist-get (nth (1- contexture-explain--back) contexture-explain--reports) :session)
     (or (contexture-explain--messages part)
         (contexture--user-error "This is %s, not a message"
                     (pcase (plist-get part :what)
                       ("note" "a note about what is left out")
                       (what (format "the text of %s" what))))))))

;;;; Bringing back what was left out

(defun contexture-explain--session ()
  "Return the name of the conversation whose window is shown."
  (plist-get (nth (1- contexture-explain--back) contexture-explain--reports) :session))

(defconst contexture-explain--most-ids 20000
  "Maximum number of messages that a line can stand for.")

(defun contexture-explain--ids (part)
  "Return the ids of the messages of PART, or nil if it has none.
Return nil, too, if they were too many: then a name only looks like theirs."
  (let ((messages (contexture-explain--messages part))
        (number (lambda (id) (string-to-number (substring id (length "msg-"))))))
    (or (plist-get messages :ids)
        (when-let* ((from (plist-get messages :from)))
          (let ((from (funcall number from)) (to (funcall number (plist-get messages :to))))
            (and (<= from to (+ from contexture-explain--most-ids))
                 (mapcar (lambda (it) (format "msg-%d" it)) (number-sequence from to))))))))

(defun contexture-explain--restored-p (part)
  "Return non-nil if the next question brings the messages of PART back."
  (when-let* ((restored (contexture-count--restored (contexture-explain--session)))
              (ids (contexture-explain--ids part)))
    ;; They are brought back together.
    (and (member (car ids) restored) (member (car (last ids)) restored))))

(defun contexture-explain--ids-here ()
  "Return the ids of the messages at point; signal an error if there are none."
  (or (contexture-explain--ids (contexture-explain--part))
      (user-error "This line shows no message")))

(defun contexture-explain-restore ()
  "Bring the messages at point back with the next question, or no longer.
They come back whole, with the calls and results that belong to them, as far as
they fit.  This is for one question; \\[contexture-explain-pin] keeps them for good."
  (interactive)
  (let* ((ids (contexture-explain--ids-here))
         (part (contexture-explain--part))
         (what (plist-get part :what))
         (back (not (contexture-explain--restored-p part))))
    (contexture-count--restore (contexture-explain--session) ids back)
    (contexture-explain--show contexture-explain--back contexture-conversations--shown
                              contexture-explain--reports)
    (contexture--message (if back "%s comes back with the next question"
                           "%s does not come back")
                         what)))

(defun contexture-explain-pin (&optional unpin)
  "Pin the messages at point, so that no window leaves them out.
With a prefix argument UNPIN, let them be left out again."
  (interactive "P")
  (let ((ids (contexture-explain--ids-here))
        (what (plist-get (contexture-explain--part) :what)))
    (contexture-conversations--call
     'pin-message (list :session (contexture-explain--session) :ids ids
                        :pinned (not unpin))
     (lambda (result)
       (contexture-conversations--announce result "pin-message")
       (contexture--message (if unpin "%s is not pinned" "%s is pinned: no window leaves it out")
                            what)))))

(defun contexture-explain-toggle ()
  "Show or hide the messages and scores behind the line at point."
  (interactive)
  (let ((part (contexture-explain--part)))
    (cond ((contexture-explain--close))
          ((contexture-explain--messages part)
           (contexture-explain--open part))
          (t (user-error "There is nothing more to show here")))))

(defun contexture-explain--close ()
  "Close the line at point, or the line that the text at point belongs to.
Return nil if that line is not open."
  (let ((inhibit-read-only t))
    (beginning-of-line)
    (when (get-text-property (point) 'contexture-explain-detail)
      (goto-char (previous-single-property-change (point) 'contexture-explain-detail))
      (forward-line -1))
    (let ((beg (line-beginning-position 2)))
      (when (and (< beg (point-max))
                 (get-text-property beg 'contexture-explain-detail))
        (delete-region beg (or (next-single-property-change
                                beg 'contexture-explain-detail)
                               (point-max)))
        t))))

(defun contexture-explain--open (part)
  "Fetch the messages of PART and their scores; show them below its line."
  (let* ((buffer (current-buffer))
         (report (nth (1- contexture-explain--back) contexture-explain--reports))
         (session (contexture--plist :session (plist-get report :session)))
         (messages (contexture-explain--messages part))
         (keys '(:at :strategy :max-tokens :tokens-before :tokens-after :sections)))
    (when (> (or (plist-get part :units) 1) contexture-explain--most)
      ;; So many texts would be too much to read.
      (setq messages (list :ids (list (plist-get messages :from)))))
    (contexture-conversations--call
     'session-report (append session (list :reports contexture-explain--back :explain t))
     (contexture-explain--of-reports
      (lambda (reports)
        (let* ((same-p (lambda (it)
                         (equal (contexture--select it keys)
                                (contexture--select report keys))))
               (whole (cl-find-if same-p reports))
               (units (contexture-explain--units part report whole)))
          (contexture-conversations--call
           'get-messages (append session '(:view :log) messages)
           (lambda (messages)
             (contexture--with-live-buffer buffer
               (contexture-explain--insert part units messages))))))))))

(defun contexture-explain--units (part report whole)
  "Return the parts of WHOLE, the full form of REPORT, that PART stands for.
Return nil if WHOLE is nil because the server no longer has it."
  (let ((skip (cl-loop for it in (plist-get report :parts)
                       until (eq it part) sum (or (plist-get it :units) 1))))
    (seq-take (nthcdr skip (plist-get whole :parts)) (or (plist-get part :units) 1))))

(defun contexture-explain--insert (part units messages)
  "Show UNITS below the line of PART, with the text of MESSAGES."
  (let ((place (text-property-any (point-min) (point-max)
                                  'contexture-explain-part part))
        (inhibit-read-only t))
    (when place
      (save-excursion
        (goto-char place)
        (forward-line)
        (unless (get-text-property (point) 'contexture-explain-detail)
          (insert
           (propertize
            (if units
                (mapconcat (lambda (unit) (contexture-explain--unit unit messages))
                           units "")
              "    The server no longer keeps the details of this window.\n")
            'contexture-explain-detail t)))))))

(defun contexture-explain--unit (unit messages)
  "Return lines for UNIT, a part of a full report, with the text of its MESSAGES."
  (propertize
   (concat
    "    " (contexture-explain--mark unit) " "
    (contexture-conversations--fit (contexture--visible (plist-get unit :what)) 14) " "
    (format "%13s\n" (contexture-explain--tokens unit))
    (when-let* ((score (plist-get unit :score)))
      (format "      score %.3g = %s\n" (plist-get score :total)
              (mapconcat (pcase-lambda (`(,name ,value))
                           (format "%s %.3g" (contexture--name name) value))
                         (seq-partition (plist-get score :parts) 2)
                         " + ")))
    (mapconcat
     (lambda (id)
       (when-let* ((message (contexture--entry :id id messages)))
         (format "      %s: %s\n"
                 (propertize (contexture--name (plist-get message :role))
                             'face 'contexture-conversation-role)
                 (contexture-explain--words message))))
     (plist-get unit :ids) ""))
   'contexture-explain-part unit
   'mouse-face 'highlight))

(defun contexture-explain--words (message)
  "Return the beginning of the text of MESSAGE, or of its calls."
  (let ((text (string-clean-whitespace (seq-take (plist-get message :content) 400))))
    (truncate-string-to-width
     (contexture--visible
      (if (and (string-empty-p text) (plist-get message :tool-calls))
          (mapconcat (lambda (call) (concat "→ " (plist-get call :name)))
                     (plist-get message :tool-calls) " ")
        text))
     72 nil nil t)))
;;; In a browser

(defvar contexture-dashboard--program nil
  "The process that serves the dashboard to browsers, or nil.")

;;;###autoload
(defun contexture-dashboard-browse ()
  "Show all conversations and their windows in a browser, by `browse-url'.
The program `contexture dashboard' serves them, on this machine only, until
Emacs ends.  Each call opens a new address, which works once."
  (interactive)
  (if (process-live-p contexture-dashboard--program)
      (process-send-string contexture-dashboard--program "\n")
    (require 'contexture-doctor)
    ;; The program joins the server of this Emacs.
    (contexture-current-connection)
    (let ((command (append (contexture-doctor--command) '("dashboard" "--no-open")
                           (contexture-doctor--own-arguments)))
          ;; Not that of this buffer, which may be on another machine.
          (default-directory "/"))
      (setq contexture-dashboard--program
            (make-process
             :name "contexture-dashboard" :connection-type 'pipe :noquery t
             :coding 'utf-8-unix :command command
             :filter #'contexture-dashboard--browse-line
             :sentinel #'contexture-dashboard--browsed)))))

(defun contexture-dashboard--browse-line (process output)
  "Open the addresses that PROCESS prints in OUTPUT, once a line is whole."
  (let ((lines (split-string (concat (process-get process 'rest) output) "\n")))
    (process-put process 'rest (car (last lines)))
    (dolist (line (butlast lines))
      (if (string-match-p "\\`https?://[^ \t]+\\'" line)
          (browse-url line)
        (process-put process 'said line)))))

(defun contexture-dashboard--browsed (process _event)
  "Say why PROCESS ended, unless it was told to."
  (when (eq (process-status process) 'exit)
    (message "The dashboard ended: %s"
             (contexture--visible (or (process-get process 'said) "it said nothing")))))

(provide 'contexture-dashboard)
;;; contexture-dashboard.el ends here
