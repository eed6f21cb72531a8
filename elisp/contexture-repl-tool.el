;;; contexture-repl-tool.el --- What a model does, and may do  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; You can allow a model to read and change the context.  Each call of such
;; a tool, and its result, is one dim line of the conversation with details
;; to unfold.  Before a model uses a tool that you have not allowed, the
;; turn waits and a block asks you; you can answer there, from the prompt,
;; or later: nothing else waits for it.

;;; Code:

(require 'contexture-repl-view)
(eval-when-compile (require 'subr-x))

(declare-function contexture-repl--request "contexture-repl-turn"
                  (method params success &optional failure))
(declare-function contexture-repl--configure "contexture-repl-settings" (&rest settings))
(declare-function contexture-repl--show-problem "contexture-repl-turn" (problem))
(declare-function contexture-repl--fetch-settings "contexture-repl-settings" ())
(declare-function contexture-tools--entry-text "contexture-tools" (entry))
(declare-function contexture-tools--names "contexture-tools" ())
(declare-function json-pretty-print-buffer "json" (&optional minimize))

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
  "A model's request to use TOOL with ARGUMENTS, described by TEXT.
NUMBER is the server's.  The block, or the line that replaces it, has the
text properties FIXED and is between the markers FROM and TO."
  number tool text arguments fixed from to)

(defconst contexture-repl-approval-buffer "*contexture: approval*"
  "Name of the buffer that shows a model's request in full.")

;;;; Lines

(defvar contexture-repl-fold-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-repl-toggle-details)
    (define-key map (kbd "TAB") #'contexture-repl-toggle-details)
    (define-key map [mouse-1] #'contexture-repl-toggle-details)
    map)
  "Keymap of lines with details.")

(defun contexture-repl--draw-fold (line details &rest properties)
  "Draw LINE below the conversation, with DETAILS and PROPERTIES.
See `contexture-repl--fold'."
  (contexture-repl--changing
    (goto-char contexture-repl--tail)
    (contexture-repl--end-line)
    (insert (apply #'contexture-repl--fold line details properties))))

(defun contexture-repl--fold (line details &rest properties)
  "Return LINE with hidden DETAILS below it, both with PROPERTIES.
Leave out DETAILS that are empty or repeat LINE."
  (let* ((details (string-trim-right (or details "")))
         (foldp (not (or (string-empty-p details) (string-suffix-p details line))))
         (fixed (apply #'contexture-repl--fixed 'face 'contexture-repl-tool
                       'contexture-note t properties)))
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
  "Maximum number of characters of details in a conversation.")

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
      (user-error "There are no details here"))
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
  "Return the ARGUMENTS of a tool in lines, with JSON pretty-printed."
  (cond ((null arguments) "")
        ((not (stringp arguments)) (string-trim-right (pp-to-string arguments)))
        ((string-match-p "\\`[ \t\n]*{[ \t\n]*}?[ \t\n]*\\'" arguments) "")
        (t (require 'json)
           (with-temp-buffer
             (insert arguments)
             (condition-case nil
                 (let ((inhibit-message t)) (json-pretty-print-buffer) (buffer-string))
               (error arguments))))))

(defun contexture-repl--one-line (text &optional width)
  "Return the beginning of TEXT on one line of at most WIDTH columns."
  (truncate-string-to-width
   (contexture--visible (string-trim (replace-regexp-in-string "[ \t\n]+" " " text)))
   (or width 60) nil nil "..."))

(defun contexture-repl--tool-name (params)
  "Return the name of the tool that PARAMS, from the server, are about."
  (contexture--visible (or (plist-get params :tool) (plist-get params :name)
                           (plist-get params :text) "a tool")))

(defun contexture-repl--draw-tool-call (params &rest properties)
  "Draw the call of a tool, from PARAMS, with PROPERTIES."
  (let* ((given (plist-get params :arguments))
         (arguments (if (stringp given) given (contexture-repl--pretty given))))
    (apply #'contexture-repl--draw-fold
           (string-trim-right (format "calls %s %s" (contexture-repl--tool-name params)
                                      (contexture-repl--one-line arguments 50)))
           (and (> (length arguments) 50) (contexture-repl--pretty given))
           'contexture-used t properties)))

(defun contexture-repl--draw-tool-result (params &rest properties)
  "Draw the result of a tool, from PARAMS, with PROPERTIES.
Its request for approval, if any, is then settled."
  (dolist (approval contexture-repl--approvals)
    (when (equal (contexture-repl--approval-tool approval)
                 (contexture-repl--tool-name params))
      (contexture-repl--settle-approval approval "not decided")))
  (apply #'contexture-repl--draw-fold
         (contexture-repl--tool-result-line params) nil
         'contexture-result t 'contexture-used t properties))

(defun contexture-repl--tool-result-line (params)
  "Return a line for the result of a tool, from PARAMS."
  (let ((name (contexture-repl--tool-name params))
        (text (or (plist-get params :text) "")))
    (contexture-repl--one-line
     (if (string-prefix-p (concat name ":") text) text
       (format "%s: %s: %s" name
               (contexture--name (or (plist-get params :outcome) :done)) text))
     (- (contexture-repl--width) 4))))

(defun contexture-repl--add-results (message calls)
  "Add details from CALLS to the lines of MESSAGE with tools' results.
CALLS are those of the turn's result, in order."
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
                     'contexture-used t 'contexture-message message))
            (setq end (+ (point) (- end at)))
            (delete-region (point) end)
            (setq end (point))))
        (setq at end)
        (pop calls)))))

;;;; What waits for the user

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

(defun contexture-repl--draw-approval (params &rest properties)
  "Ask about the request in PARAMS, in a block with PROPERTIES."
  (let* ((approval (contexture-repl--make-approval
                    :number (plist-get params :approval)
                    :tool (contexture-repl--tool-name params)
                    :text (contexture-repl--approval-words params)
                    :arguments (contexture--visible
                                (contexture-repl--pretty (plist-get params :arguments))
                                t)
                    :fixed properties)))
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

(defun contexture-repl--approval-words (params)
  "Return the request in PARAMS as text, with any place outside the project."
  (let ((text (contexture-repl--one-line (or (plist-get params :text) "") 200))
        (outside (plist-get params :outside)))
    (if (member outside '(nil "")) text
      (format "%s (outside the project: %s)" text
              (contexture-repl--one-line outside 200)))))

(defun contexture-repl--approval-block (approval)
  "Return the lines that ask about APPROVAL."
  (let ((block (concat
                (propertize (format "The model wants to use %s: %s\n"
                                    (contexture-repl--approval-tool approval)
                                    (contexture-repl--approval-text approval))
                            'face 'contexture-repl-approval 'wrap-prefix "  ")
                (contexture-repl--approval-details approval)
                "  " (contexture-repl--approval-button "[y] once" 'once) "  "
                (contexture-repl--approval-button "[a] always" 'always) "  "
                (contexture-repl--approval-button "[n] refuse" 'refuse) "\n")))
    (add-text-properties
     0 (length block)
     (apply #'contexture-repl--fixed 'contexture-approval approval
            'keymap contexture-repl-approval-map
            (contexture-repl--approval-fixed approval))
     block)
    block))

(defun contexture-repl--approval-details (approval)
  "Return the arguments of APPROVAL, or their beginning, as lines."
  (let* ((text (contexture-repl--approval-arguments approval))
         (shown (contexture-repl--beginning text 12 (- (contexture-repl--width) 6))))
    (if (string-empty-p text) ""
      (propertize (concat (replace-regexp-in-string "^" "  " shown)
                          (if (equal shown text) ""
                            (format "\n  ... v shows all of it, %s"
                                    (contexture--count (length text) "character")))
                          "\n")
                  'face 'contexture-repl-tool))))

(defun contexture-repl--beginning (text lines width)
  "Return the first LINES of TEXT, each cut at WIDTH columns."
  (mapconcat (lambda (line) (truncate-string-to-width line width))
             (seq-take (split-string text "\n") lines) "\n"))

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
      (display-buffer (current-buffer)))))

(defun contexture-repl--approval-button (label decision)
  "Return LABEL as a button for DECISION."
  (propertize label 'face 'contexture-repl-button 'mouse-face 'highlight
              'contexture-decision decision
              'help-echo (concat "mouse-1: " label)))

(defun contexture-repl--approval-here ()
  "Return the request at point, or else the oldest one."
  (or (get-text-property (point) 'contexture-approval)
      (car contexture-repl--approvals)
      (user-error "No request is waiting for your decision")))

(defun contexture-repl-approve (decision)
  "Decide on the model's request at point, or else on the oldest one.
DECISION is `once', `always' (for this tool in this session), or
`refuse'.  Interactively, take it from the button at point, or ask."
  (interactive
   (list (or (get-text-property (point) 'contexture-decision)
             (contexture-repl--read-decision (contexture-repl--approval-here)))))
  (contexture-repl--rule (contexture-repl--approval-here) decision))

(defun contexture-repl--read-decision (approval)
  "Ask the user about APPROVAL."
  (pcase (read-char-choice
          (format "%s: %s  [y] once  [a] always  [n] refuse "
                  (contexture-repl--approval-tool approval)
                  (contexture-repl--approval-text approval))
          '(?y ?a ?n))
    (?y 'once) (?a 'always) (_ 'refuse)))

(defun contexture-repl-approve-once ()
  "Allow the request at point this time."
  (interactive)
  (contexture-repl-approve 'once))

(defun contexture-repl-approve-always ()
  "Allow the tool of the request at point from now on, in this session."
  (interactive)
  (contexture-repl-approve 'always))

(defun contexture-repl-refuse ()
  "Refuse the request at point."
  (interactive)
  (contexture-repl-approve 'refuse))

(defun contexture-repl-approve-click (event)
  "Decide as the button clicked by EVENT says."
  (interactive "e")
  (with-current-buffer (window-buffer (posn-window (event-start event)))
    (let* ((position (posn-point (event-start event)))
           (decision (get-text-property position 'contexture-decision)))
      (when decision
        (contexture-repl--rule (get-text-property position 'contexture-approval)
                                 decision)))))

(defvar contexture--own-call)

(defun contexture-repl--rule (approval decision)
  "Send the DECISION on APPROVAL, and show it in place of the block.
Show the decision as made once the server has accepted it.  It is valid
for this server only: after a crash, a new server asks again, with other
numbers."
  (unless (memq approval contexture-repl--approvals)
    (user-error "You have already decided on this"))
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
  "Show PROBLEM, why the server did not accept the decision on APPROVAL.
Ask again, unless the server no longer waits for it."
  (if (or (null contexture-repl--turn)
          (eq (plist-get (plist-get problem :data) :kind) :no-such-approval))
      (contexture-repl--settle-approval
       approval "not decided; the server no longer waits for it")
    (contexture-repl--replace-block approval (contexture-repl--approval-block approval))
    (push approval contexture-repl--approvals)
    (contexture-repl--draw-header)
    (contexture-repl--show-problem problem)))

(defun contexture-repl--settle-approval (approval outcome)
  "Replace the block of APPROVAL with OUTCOME."
  (contexture-repl--decided approval outcome)
  (set-marker (contexture-repl--approval-from approval) nil)
  (set-marker (contexture-repl--approval-to approval) nil))

(defun contexture-repl--decided (approval words)
  "Stop asking about APPROVAL, and show WORDS in place of its block."
  (setq contexture-repl--approvals (delq approval contexture-repl--approvals))
  (contexture-repl--replace-block
   approval
   (apply #'propertize
          (format "  %s: %s\n" (contexture-repl--approval-tool approval) words)
          'face 'contexture-repl-tool 'contexture-note t
          (apply #'contexture-repl--fixed (contexture-repl--approval-fixed approval))))
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
  "Stop asking about undecided requests, since the server no longer waits."
  (dolist (approval contexture-repl--approvals)
    (contexture-repl--settle-approval approval "not decided")))

;;;; Which tools there are

(defun contexture-repl-tools (what &optional tool)
  "Choose what models may do in this session.
WHAT is `on', `off', `allow' or `ask'.  `on' offers the tools of the
context and asks you before each use; `off' offers none.  `allow' lets
models use TOOL without asking, and `ask' asks again."
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
  "Return the names of the server's tools, and of those that Emacs has on."
  (append contexture-repl--tools
          (and contexture-tools (fboundp 'contexture-tools--names)
               (contexture-tools--names))))

(defun contexture-repl--allowed-tools ()
  "Return the names of the tools that need no approval in this session."
  (mapcar #'contexture--name (plist-get contexture-repl--tool-settings :allowed-tools)))

(defun contexture-repl--tool-choices (what)
  "Return the tools to which WHAT, `allow' or `ask', can apply."
  (let ((allowed (contexture-repl--allowed-tools)))
    (if (eq what 'ask) allowed
      (cl-set-difference (contexture-repl--all-tools) allowed :test #'equal))))

(defun contexture-repl--tools-text ()
  "Return a phrase for this session's tools, and those that need no approval."
  (let ((tools (plist-get contexture-repl--tool-settings :tools))
        (allowed (contexture-repl--allowed-tools)))
    (mapconcat
     #'identity
     (append
      (list (if tools "Models are offered these tools (/tools off: none):"
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
           (cons "They may call these of Emacs (M-x contexture-tools-off: none):"
                 (mapcar (lambda (entry)
                           (concat "  " (contexture-tools--entry-text entry)))
                         contexture-tools))))
     "\n")))

(provide 'contexture-repl-tool)
;;; contexture-repl-tool.el ends here
