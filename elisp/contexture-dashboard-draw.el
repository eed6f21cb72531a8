;;; contexture-dashboard-draw.el --- What the dashboard looks like  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Makes the text of the dashboard from the server's answers.  Nothing
;; here calls the server or knows about windows and hooks.

;;; Code:

(require 'contexture-count)
(require 'button)
(require 'contexture-session)
(require 'contexture-session-line)
(require 'contexture-session-show)
(eval-when-compile (require 'subr-x))

(declare-function contexture-dashboard-rollback "contexture-dashboard"
                  (&optional checkpoint))
(declare-function contexture-dashboard-follow "contexture-dashboard" ())

(defface contexture-dashboard-bar '((t :inherit success))
  "Face of the bar that shows how full a session is."
  :group 'contexture-session)

(defface contexture-dashboard-button '((t :inherit link))
  "Face of buttons in the dashboard."
  :group 'contexture-session)

(defconst contexture-dashboard--bar-width 40
  "Width, in columns, of the bar that shows how full a session is.")

(defconst contexture-dashboard--parts 5
  "Maximum number of a section's parts to show; the largest are shown.")

;;;; Words

(defun contexture-dashboard--header (data stale)
  "Return the header line for DATA.
STALE, if non-nil, says why DATA may be out of date."
  (let ((session (plist-get data :session)))
    (contexture-session--header
     (concat
      (cond (session
             (format "Session %s: %s" (plist-get session :session)
                     (contexture-session-state (plist-get data :stats))))
            ((null data) "Asking the server...")
            ((plist-get data :gone) "This session is deleted")
            (t "No session is open"))
      (if stale (format "  (%s)" stale) "")))))

(defun contexture-dashboard--heading (text &rest more)
  "Return TEXT as a heading, followed by the strings MORE."
  (concat "\n" (propertize text 'face 'contexture-session-heading)
          (if more (concat "  " (apply #'concat more)) "") "\n"))

(defun contexture-dashboard--button (name label action help)
  "Return a button that shows LABEL and calls ACTION, a command.
NAME tells it apart from others; HELP says what it does."
  (with-temp-buffer
    (insert-text-button label 'action (lambda (_) (call-interactively action))
                        'contexture-name name 'follow-link t
                        'face 'contexture-dashboard-button 'help-echo help)
    (buffer-string)))

(defun contexture-dashboard--of (number whole)
  "Return a phrase for NUMBER of WHOLE."
  (format "%s of %s" (contexture-session--number number)
          (contexture-session--number whole)))

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
                   (contexture-dashboard--quality (plist-get data :quality))
                   (contexture-dashboard--window data)
                   (contexture-dashboard--managing data)
                   (contexture-dashboard--checkpoints (plist-get data :checkpoints))
                   (contexture-dashboard--usage (plist-get data :usage))
                   (contexture-dashboard--agents (plist-get data :agents))))))

(defun contexture-dashboard--gone ()
  "Return the text of the dashboard when its session is deleted."
  (concat "This session is deleted; you can bring it back whole.\n\n  "
          (contexture-dashboard--button 'restore "[Bring it back]"
                                        #'contexture-session-restore
                                        "Bring a deleted session back")
          "  "
          (contexture-dashboard--button 'follow "[Show the current session]"
                                        #'contexture-dashboard-follow
                                        "f: follow the current session")
          "\n"))

(defun contexture-dashboard--empty ()
  "Return the text of the dashboard while no session is open."
  (concat "No session is open.  A session is a conversation with a model.\n\n  "
          (contexture-dashboard--button 'open "[Open or begin a session]"
                                        #'contexture-session-open
                                        "Open a session, or begin one")
          "\n"))

;;;; The session

(defun contexture-dashboard--session (data)
  "Return the section on the contents of the session in DATA."
  (let* ((session (plist-get data :session))
         (stats (plist-get data :stats))
         (items (plist-get data :items))
         (log (or (plist-get stats :log) 0)))
    (concat
     (contexture-dashboard--row
      "Messages" (if (eql log (plist-get stats :items))
                     (contexture-session--number log)
                   (contexture-dashboard--of (plist-get stats :items) log))
      (contexture-dashboard--whereabouts stats))
     (contexture-dashboard--row
      "Turns" (contexture-session--number (plist-get stats :turns))
      (format "last changed %s"
              (contexture-session--time (plist-get session :updated))))
     (contexture-dashboard--row
      "Items" (contexture-session--number (length items))
      (format "%s, in %s"
              (contexture-session--many
               (apply #'+ (mapcar (lambda (it) (or (plist-get it :tokens) 0)) items))
               "token")
              (contexture-dashboard--manager (plist-get session :manager)))))))

(defun contexture-dashboard--manager (name)
  "Return a name for the context NAME of a session."
  (if (string-prefix-p "*session " name) "the session's own context"
    (contexture--label name)))

(defun contexture-dashboard--whereabouts (stats)
  "Return a phrase for where the messages that STATS count are."
  (let ((parts (cl-loop for (number . words)
                        in `((,(plist-get stats :pruned) . "pruned")
                             (,(plist-get stats :summarized) . "in a summary")
                             (,(contexture-dashboard--rolled-back stats) . "rolled back")
                             (,(plist-get stats :pinned) . "pinned"))
                        when (> (or number 0) 0)
                        collect (format "%s %s" (contexture-session--number number)
                                        words))))
    (if (eql (plist-get stats :items) (plist-get stats :log))
        (string-join (cons "all in view" parts) ", ")
      (string-join (cons "in view" parts) ", "))))

(defun contexture-dashboard--rolled-back (stats)
  "Return the number of messages in STATS that are not in the conversation."
  (apply #'- (plist-get stats :log)
         (mapcar (lambda (key) (or (plist-get stats key) 0))
                 '(:items :pruned :summarized))))

(defun contexture-dashboard--row (name value more)
  "Return a line that shows NAME with VALUE, and the phrase MORE."
  (concat (propertize (format "%-11s" name) 'face 'bold)
          (string-join (delete "" (list value (propertize more 'face 'shadow))) "  ")
          "\n"))

;;;; How full it is

(defun contexture-dashboard--fullness (data)
  "Return the lines on what the session of DATA would send now.
Without a known limit there is no bar."
  (let* ((warning (plist-get (plist-get data :stats) :needs-pruning))
         (id (plist-get (plist-get data :session) :id))
         (count (contexture-count--of id))
         (limit (plist-get count :limit))
         (percent (and limit (/ (* 100.0 (plist-get count :tokens)) limit)))
         (face (if warning 'contexture-session-warning 'contexture-dashboard-bar)))
    (concat
     (contexture-dashboard--row
      "To send" (propertize (if count (contexture-count--text id) "counting...")
                            'face (if warning 'contexture-session-warning 'default))
      (concat (if (and limit (plist-get count :model))
                  (format "for %s" (plist-get count :model))
                "")
              (if (or (null count) (plist-get count :exact)) ""
                (if limit ", estimated" "estimated"))))
     (if limit
         (contexture-dashboard--row
          "Used" (concat (contexture-dashboard--bar percent face)
                         (propertize (format " %.1f %%" percent) 'face face))
          "")
       ""))))

(defun contexture-dashboard--warning (stats)
  "Return a warning if STATS say that the window is nearly full.
If nobody knows the model, name the limit that is assumed."
  (cond ((not (plist-get stats :needs-pruning)) "")
        ((plist-get stats :model-known)
         (propertize (format "\n! More than 80 %% is used by the whole history (%s of %s \
tokens): prune or\n  summarize before the model's window is full.\n"
                             (contexture-session--number (plist-get stats :tokens))
                             (contexture-session--number (plist-get stats :limit)))
                     'face 'contexture-session-warning))
        (t (propertize (format "\n! The history has %s tokens, more than 80 %% of the %s \
assumed for an unknown\n  model: prune or summarize it, or choose the model (C).\n"
                               (contexture-session--number (plist-get stats :tokens))
                               (contexture-session--number (plist-get stats :limit)))
                       'face 'contexture-session-warning))))

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
  "Return the buttons for the session of DATA."
  (concat
   "\n"
   (mapconcat
    (pcase-lambda (`(,name ,label ,command ,help))
      (contexture-dashboard--button name label command help))
    `((prune "[Prune now]" contexture-session-prune
             "P: leave out the least important messages")
      (summarize "[Summarize]" contexture-session-summarize
                 "S: replace older messages with a summary")
      (checkpoint "[Checkpoint]" contexture-session-checkpoint
                  "c: take a checkpoint to go back to")
      ,@(when (plist-get data :checkpoints)
          '((rollback "[Roll back]" contexture-dashboard-rollback
                      "b: go back to a checkpoint")))
      (undo "[Undo]" contexture-session-undo
            "u: undo the last pruning, summary or rollback")
      (explain "[Explain]" contexture-explain
               "e: why each part of the last window is in or out")
      (transcript "[Transcript]" contexture-session-transcript
                  "t: the whole conversation"))
    "  ")
   "\n"))

(defun contexture-dashboard--settings (settings)
  "Return the line on the automatic steps of process-turn, from SETTINGS."
  (let* ((value (lambda (name)
                  (plist-get (cl-find name (plist-get settings :settings)
                                      :key (lambda (it) (plist-get it :name)))
                             :value)))
         (parts
          (delq nil
                (list
                 (when (funcall value :auto-summarize)
                   (format "summary above %s tokens"
                           (contexture-session--number
                            (truncate (* (funcall value :max-tokens)
                                         (funcall value :summarize-at-ratio))))))
                 (when (funcall value :auto-checkpoint)
                   (format "checkpoint every %s"
                           (contexture--count
                            (funcall value :checkpoint-interval) "turn")))
                 (when (funcall value :auto-rollback)
                   (format "rollback below a quality of %.2f"
                           (funcall value :quality-threshold)))))))
    (if settings
        (contexture-dashboard--row
         "By itself" "" (concat (if parts (string-join parts ", ") "nothing")
                                " (C changes that)"))
      "")))

;;;; Quality

(defun contexture-dashboard--quality (quality)
  "Return the section on QUALITY, with its parts and their reasons."
  (concat
   (contexture-dashboard--heading "Quality")
   (mapconcat
    (lambda (part)
      (format "  %-10s %.2f × %.1f   %s\n" (contexture--name (plist-get part :part))
              (plist-get part :value) (plist-get part :weight)
              (plist-get part :reason)))
    (plist-get quality :quality) "")
   (format "  %-10s %.2f of 1\n" "together" (or (plist-get quality :quality-score) 0))))

;;;; The last window

(defun contexture-dashboard--window (data)
  "Return the section on the last window of the session of DATA."
  (let ((report (car (plist-get data :reports))))
    (if (null report)
        (concat (contexture-dashboard--heading "Last window")
                "  None has been built since the server started.\n")
      (concat
       (contexture-dashboard--heading
        "Last window"
        (format "%s tokens, %s offered; %s, %s"
                (contexture-dashboard--of (plist-get report :tokens-after)
                                          (plist-get report :max-tokens))
                (contexture-session--number (plist-get report :tokens-before))
                (contexture--name (plist-get report :strategy))
                (contexture-session--time (plist-get report :at))))
       (propertize (format "  %-24s %9s %9s\n" "Section" "Offered" "Taken")
                   'face 'shadow)
       (mapconcat (lambda (section)
                    (contexture-dashboard--section section report
                                                   (plist-get data :items)))
                  (plist-get report :sections) "")))))

(defun contexture-dashboard--section (section report items)
  "Return the lines of SECTION of REPORT; ITEMS are those of the session."
  (let* ((name (plist-get section :section))
         (parts (if (eq name :context-items)
                    (mapcar #'contexture-dashboard--item-part items)
                  (cl-remove-if-not (lambda (part) (eq name (plist-get part :section)))
                                    (plist-get report :parts))))
         (largest (contexture-dashboard--largest parts))
         (rest (- (length parts) (length largest))))
    (concat
     (contexture-dashboard--counts
      2 (contexture--name name) (plist-get section :before) (plist-get section :after) "")
     (unless (and (null (cdr parts)) (equal (plist-get (car parts) :what)
                                            (contexture--name name)))
       (mapconcat (lambda (part)
                    (contexture-dashboard--counts
                     4 (plist-get part :what) (plist-get part :before)
                     (plist-get part :after) (plist-get part :reason)))
                  largest ""))
     (if (> rest 0)
         (propertize (format "    and %s\n" (contexture--count rest "smaller one"))
                     'face 'shadow)
       ""))))

(defun contexture-dashboard--item-part (item)
  "Return ITEM of a context in the form of a part of a window."
  (list :what (contexture--description (plist-get item :metadata))
        :before (or (plist-get item :tokens) 0)
        :reason (if (plist-get item :pinned) "an item, pinned" "an item")))

(defun contexture-dashboard--largest (parts)
  "Return the largest of PARTS, in the order of PARTS."
  (let ((chosen (seq-take
                 (sort (copy-sequence parts)
                       (lambda (a b) (> (plist-get a :before) (plist-get b :before))))
                 contexture-dashboard--parts)))
    (cl-remove-if-not (lambda (part) (memq part chosen)) parts)))

(defun contexture-dashboard--counts (indent name before after reason)
  "Return a line that shows NAME, indented by INDENT, with its tokens.
BEFORE tokens were offered, and AFTER (nil if unknown) were taken, for
REASON."
  (concat (make-string indent ?\s)
          (contexture-session--fit name (- 26 indent)) " "
          (format "%9s %9s" (contexture-session--number before)
                  (cond ((null after) "")
                        ((= after 0) "-")
                        (t (contexture-session--number after))))
          (if (string-empty-p reason) ""
            (concat "  " (propertize reason 'face 'shadow)))
          "\n"))

;;;; Checkpoints and windows

(defun contexture-dashboard--checkpoints (checkpoints)
  "Return the section on CHECKPOINTS, the newest first, each a button."
  (concat
   (contexture-dashboard--heading "Checkpoints")
   (if checkpoints "" "  None yet.\n")
   (mapconcat
    (lambda (checkpoint)
      (let ((id (plist-get checkpoint :checkpoint)))
        (concat "  "
                (contexture-dashboard--button
                 id (format "%-8s" id)
                 (lambda () (interactive) (contexture-dashboard-rollback id))
                 "RET: go back to it; you are asked first")
                (format " turn %-5d %s  %s\n" (plist-get checkpoint :turn)
                        (contexture-session--time (plist-get checkpoint :created))
                        (plist-get checkpoint :message)))))
    (seq-take (reverse checkpoints) 8) "")
   (if (nthcdr 8 checkpoints)
       (propertize (format "  and %d older\n" (- (length checkpoints) 8)) 'face 'shadow)
     "")))

(defun contexture-dashboard--managing (data)
  "Return the section on the notes in DATA, or \"\" if there are none."
  (let ((settings (plist-get data :settings))
        (views (plist-get data :views)))
    (if (not (or views (plist-get settings :manage))) ""
      (concat
       (contexture-dashboard--heading
        "Notes" "  "
        (contexture-dashboard--button 'views "[All notes]" #'contexture-session-views
                                      "V: the notes that stood for the history, turn by turn"))
       (format "  %s\n" (if (plist-get settings :manage)
                            (format "Notes are taken with the template %s"
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
                   ((and before after) (contexture-session--many-of before after))
                   (t "")))
     'face (if failed 'contexture-session-warning 'default))))

(declare-function contexture-session-views "contexture-session-views" (&optional session))

(defun contexture-dashboard--usage (usage)
  "Return the section on the last windows in USAGE, the newest first.
USAGE is the result of `usage-log'."
  (let ((windows (reverse (plist-get usage :windows))))
    (if (null windows) ""
      (concat
       (contexture-dashboard--heading "Last windows")
       (propertize (format "  %-16s %-11s %-14s %9s %9s  %s\n" "Built" "Strategy" "Phase"
                           "Tokens" "Allowed" "Messages")
                   'face 'shadow)
       (mapconcat
        (lambda (it)
          (format "  %-16s %-11s %-14s %9s %9s  %8s\n"
                  (contexture-session--time (plist-get it :at))
                  (contexture--name (plist-get it :strategy))
                  (contexture--name (or (plist-get it :phase) "-"))
                  (contexture-session--number (plist-get it :total))
                  (contexture-session--number (plist-get it :budget))
                  (contexture-session--number (plist-get it :messages))))
        windows "")))))

;;;; Agents

(defun contexture-dashboard--agents (agents)
  "Return the section on AGENTS, the result of `list-agents'.
It is empty if no agent ever came."
  (let ((sessions (plist-get agents :sessions))
        (connected (plist-get agents :connected))
        (waiting (plist-get agents :waiting)))
    (if (not (or sessions connected waiting)) ""
      (concat
       (contexture-dashboard--heading "Agents")
       (if connected
           (format "  Connected: %s\n"
                   (mapconcat #'contexture-dashboard--connected-agent connected ", "))
         "")
       (if waiting
           (format "  With the next prompt: %s\n"
                   (contexture--count (length waiting) "item"))
         "")
       (if sessions
           (propertize (format "  %-12s %-16s %-16s %-16s %6s %8s\n" "Agent" "Session"
                               "Project" "Given" "Items" "Tokens")
                       'face 'shadow)
         "")
       (mapconcat #'contexture-dashboard--agent-session sessions "")))))

(defun contexture-dashboard--connected-agent (agent)
  "Return a phrase for AGENT, which is connected: its name, version and project."
  (let ((version (plist-get agent :version))
        (project (plist-get agent :project)))
    (concat (plist-get agent :name)
            (if (equal version "") "" (concat " " version))
            (if (equal project "") ""
              (format " (%s)" (contexture-dashboard--folder project))))))

(defun contexture-dashboard--agent-session (session)
  "Return a line for SESSION of an agent: what it was given last, and when."
  (let ((at (plist-get session :at))
        (tokens (plist-get session :tokens)))
    (format "  %s %s %s %-16s %6s %8s\n"
            (contexture-session--fit (plist-get session :agent) 12)
            (contexture-session--fit (plist-get session :agent-session) 16)
            (contexture-session--fit
             (contexture-dashboard--folder (plist-get session :project)) 16)
            (if (> at 0) (contexture-session--time at) "")
            (contexture-session--number (plist-get session :count))
            (if (> tokens 0) (contexture-session--number tokens) ""))))

(defun contexture-dashboard--folder (path)
  "Return the name of the folder PATH, which may be empty."
  (file-name-nondirectory (directory-file-name path)))

(provide 'contexture-dashboard-draw)
;;; contexture-dashboard-draw.el ends here
