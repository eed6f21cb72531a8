;;; contexture-session-show.el --- Read, search and export conversations  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Shows sessions: the transcript of one, the hits of a search through all,
;; and exports, which `contexture-session-import' reads again.

;;; Code:

(require 'contexture-session)
(eval-when-compile (require 'subr-x))

(defface contexture-session-role '((t :inherit font-lock-keyword-face :weight bold))
  "Face of the role of a message."
  :group 'contexture-session)

(defface contexture-session-out-of-view '((t :inherit shadow))
  "Face of messages that a model no longer sees."
  :group 'contexture-session)

(defface contexture-session-heading '((t :inherit bold :underline t))
  "Face of headings in buffers that show sessions."
  :group 'contexture-session)

;;;; Messages

(defun contexture-session--message-heading (message)
  "Return the line above MESSAGE in a transcript."
  (concat
   (propertize (contexture--name (plist-get message :role))
               'face 'contexture-session-role)
   (propertize
    (concat
     (format "  %s, %s, %s" (plist-get message :id)
             (contexture-session--time (plist-get message :timestamp))
             (contexture-session--many (plist-get message :tokens) "token"))
     (if-let* ((phase (plist-get message :phase)))
         (concat ", " (contexture--name phase))
       "")
     (if-let* ((id (plist-get message :tool-call-id)))
         (concat ", answers " (contexture--visible id))
       "")
     (if (plist-get message :pinned) ", pinned" "")
     (if (plist-get message :in-view) "" ", not in view"))
    'face 'shadow)))

(defun contexture-session--message-text (message)
  "Return MESSAGE as text for a transcript."
  (let ((body (concat
               (string-trim-right (plist-get message :content))
               (mapconcat (lambda (call)
                            (format "\n→ %s %s"
                                    (contexture--visible (plist-get call :name))
                                    (plist-get call :arguments)))
                          (plist-get message :tool-calls) ""))))
    (propertize
     (concat (contexture-session--message-heading message) "\n"
             (replace-regexp-in-string
              "^\\(?:.\\)" "  \\&"
              (if (plist-get message :in-view) body
                (propertize body 'face 'contexture-session-out-of-view)))
             "\n\n")
     'contexture-session-message message)))

;;;; The transcript

(defvar contexture-session-transcript-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "n" #'contexture-session-transcript-next)
    (define-key map "p" #'contexture-session-transcript-previous)
    (define-key map "P" #'contexture-session-transcript-pin)
    (define-key map "w" #'contexture-session-transcript-copy)
    (define-key map "l" #'contexture-session-transcript-toggle-log)
    (define-key map "a" #'contexture-session-add-message)
    (define-key map "v" #'contexture-dashboard)
    (define-key map "?" #'describe-mode)
    map)
  "Keymap of `contexture-session-transcript-mode'.")

(defvar-local contexture-session--view :conversation
  "View of the transcript: `:conversation', or `:log' for all messages.")

(define-derived-mode contexture-session-transcript-mode special-mode "Transcript"
  "Major mode for the transcript of a session.
\\<contexture-session-transcript-mode-map>\
\\[contexture-session-transcript-next] and \
\\[contexture-session-transcript-previous] go from message to message,
\\[contexture-session-transcript-pin] pins the one at point, so that it is
never left out, and \\[contexture-session-transcript-copy] copies it.
\\[contexture-session-transcript-toggle-log] also shows what was rolled back,
and \\[revert-buffer] asks the server again.

\\{contexture-session-transcript-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq-local revert-buffer-function #'contexture-session-transcript--revert
              word-wrap t))

;;;###autoload
(defun contexture-session-transcript (session &optional message)
  "Show the transcript of SESSION, by default the current one.
With a prefix argument, choose one.  Point goes to MESSAGE, an id, or to
the end."
  (interactive
   (list (if current-prefix-arg
             (contexture-session--id (contexture-session--read "Transcript of"))
           contexture-session--shown)))
  (if session
      (contexture-session-transcript--fetch session :conversation message)
    (contexture-session--call
     'current-session nil
     (lambda (entry)
       (contexture-session-transcript--fetch (plist-get entry :id) :conversation
                                             message)))))

(defun contexture-session-transcript--fetch (session view &optional message buffer)
  "Fetch the messages of SESSION in VIEW, and show them.
Point goes to MESSAGE, an id.  BUFFER, if given, shows the messages."
  (contexture-session--call
   'session-stats (list :session session)
   (lambda (stats)
     (contexture-request-pages
      'get-messages (list :session session :view view)
      :success (lambda (messages)
                 (contexture-session-transcript--show session stats view messages
                                                      message buffer))
      :error #'contexture-session--show-error))))

(defun contexture-session-transcript--show (session stats view messages message buffer)
  "Show MESSAGES and STATS of SESSION in VIEW.
Point goes to MESSAGE if it is there.  BUFFER shows them already, or is
nil."
  (let ((again buffer)
        (buffer (or buffer
                    (get-buffer-create
                     (contexture--format "*contexture: session %s*"
                                         (plist-get stats :session))))))
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (unless (derived-mode-p 'contexture-session-transcript-mode)
          (contexture-session-transcript-mode))
        (setq contexture-session--shown session
              contexture-session--view view)
        (contexture-session-transcript--insert stats messages)
        (contexture-session-transcript--goto message))
      (unless again
        (pop-to-buffer buffer)
        (contexture-session-transcript--goto message)))))

(defun contexture-session-transcript--insert (stats messages)
  "Show MESSAGES in this buffer, below a line from STATS."
  (let ((inhibit-read-only t))
    (erase-buffer)
    (setq header-line-format
          (contexture-session--header
           (format "Session %s: %s, %s in view, %s%s" (plist-get stats :session)
                   (contexture-session--many (length messages) "message")
                   (contexture-session--number (plist-get stats :items))
                   (contexture-session--many (plist-get stats :tokens) "token")
                   (if (eq contexture-session--view :log)
                       "; with what was rolled back" ""))))
    (if messages
        (progn
          (apply #'insert (mapcar #'contexture-session--message-text messages))
          (contexture--show-hidden))
      (insert "There is no message yet.  "
              (contexture-session--key 'contexture-session-add-message)
              " adds a message.\n"))))

(defun contexture-session--header (text)
  "Return TEXT for a header line."
  (concat " " (string-replace "%" "%%" (contexture--visible text))))

(defun contexture-session-transcript--goto (id)
  "Go to the message ID, or to the last one if it is not there."
  (goto-char (point-max))
  (let ((place (and id (contexture-session-transcript--position id))))
    (if place (goto-char place)
      (contexture-session-transcript-previous))))

(defun contexture-session-transcript--position (id)
  "Return the position where the message ID begins, or nil."
  (let ((position (point-min)) found)
    (while (and position (not found))
      (if (equal id (plist-get (get-text-property position 'contexture-session-message)
                               :id))
          (setq found position)
        (setq position (next-single-property-change
                        position 'contexture-session-message))))
    found))

(defun contexture-session-transcript--revert (&rest _)
  "Fetch the messages again, and stay at the one at point."
  (contexture-session-transcript--fetch
   contexture-session--shown contexture-session--view
   (plist-get (get-text-property (point) 'contexture-session-message) :id)
   (current-buffer)))

(defun contexture-session-transcript-next (&optional count)
  "Go to the next message, or COUNT messages on."
  (interactive "p")
  (dotimes (_ (or count 1))
    (let ((next (next-single-property-change (point) 'contexture-session-message)))
      (when (and next (< next (point-max)))
        (goto-char next)))))

(defun contexture-session-transcript-previous (&optional count)
  "Go to the beginning of the message, or COUNT messages back."
  (interactive "p")
  (dotimes (_ (or count 1))
    (goto-char (previous-single-property-change
                (point) 'contexture-session-message nil (point-min)))))

(defun contexture-session-transcript--message ()
  "Return the message at point."
  (or (get-text-property (point) 'contexture-session-message)
      (user-error "There is no message here")))

(defun contexture-session-transcript-pin ()
  "Pin or unpin the message at point; windows never leave out pinned ones."
  (interactive)
  (let* ((message (contexture-session-transcript--message))
         (pin (not (plist-get message :pinned)))
         (buffer (current-buffer)))
    (contexture-session--call
     'pin-message
     (append (contexture-session--params :id (plist-get message :id))
             (list :pinned pin))
     (lambda (result)
       (contexture-session--announce result "pin-message")
       (contexture--message "%s is %s" (plist-get message :id)
                (if (plist-get result :pinned) "pinned" "not pinned"))
       (when (buffer-live-p buffer)
         (with-current-buffer buffer (revert-buffer)))))))

(defun contexture-session-transcript-copy ()
  "Copy the text of the message at point to the kill ring."
  (interactive)
  (let ((message (contexture-session-transcript--message)))
    (kill-new (plist-get message :content))
    (contexture--message "Copied %s" (plist-get message :id))))

(defun contexture-session-transcript-toggle-log ()
  "Show or hide the messages that were rolled back."
  (interactive)
  (setq contexture-session--view
        (if (eq contexture-session--view :log) :conversation :log))
  (revert-buffer))

;;;; Single messages

(defconst contexture-session--message-buffer "*contexture: message*"
  "Name of the buffer that shows single messages.")

(defun contexture-session--show-messages (session params)
  "Show the messages of SESSION that PARAMS choose, beside this buffer."
  (contexture-session--call
   'get-messages (append (contexture--plist :session session) '(:view :log) params)
   (lambda (messages)
     (let ((buffer (get-buffer-create contexture-session--message-buffer))
           (inhibit-read-only t))
       (with-current-buffer buffer
         (contexture-session-transcript-mode)
         (setq contexture-session--shown session
               revert-buffer-function #'ignore)
         (erase-buffer)
         (apply #'insert (mapcar #'contexture-session--message-text messages))
         (contexture--show-hidden)
         (goto-char (point-min)))
       (display-buffer buffer)))))

;;;; Searching

(defconst contexture-session-search-buffer "*contexture: search*"
  "Name of the buffer that shows the hits of a search in sessions.")

(defvar contexture-session-search-history nil
  "History of searches in sessions.")

(defvar-local contexture-session--query nil
  "Query whose hits this buffer shows.")

(defvar contexture-session-search-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-session-search-visit)
    (define-key map [mouse-2] #'contexture-session-search-visit)
    (define-key map [follow-link] 'mouse-face)
    (define-key map "n" #'next-line)
    (define-key map "p" #'previous-line)
    (define-key map "s" #'contexture-session-search)
    (define-key map "?" #'describe-mode)
    map)
  "Keymap of `contexture-session-search-mode'.")

(define-derived-mode contexture-session-search-mode special-mode "Search"
  "Major mode for the hits of a search in sessions.
\\<contexture-session-search-mode-map>\
\\[contexture-session-search-visit] shows the message in its session.

\\{contexture-session-search-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq-local truncate-lines t
              revert-buffer-function #'contexture-session-search--revert))

;;;###autoload
(defun contexture-session-search (query)
  "Search the names and messages of all sessions for the words of QUERY.
The best hits come first; RET shows one in its session."
  (interactive (list (read-string "Search sessions for: " nil
                                  'contexture-session-search-history)))
  (when (string-blank-p query)
    (user-error "Type some words to search for"))
  (contexture-session--call
   'search-sessions (list :query query :limit 100)
   (lambda (hits)
     (if (null hits)
         (contexture--message "No session has %s" query)
       (pop-to-buffer (get-buffer-create contexture-session-search-buffer))
       (contexture-session-search--show query hits)))))

(defun contexture-session-search--show (query hits)
  "Show HITS of QUERY in this buffer."
  (unless (derived-mode-p 'contexture-session-search-mode)
    (contexture-session-search-mode))
  (setq contexture-session--query query
        header-line-format
        (contexture-session--header
         (format "%s of %s, the best first" (contexture--count (length hits) "hit")
                 query)))
  (let* ((inhibit-read-only t)
         (column (lambda (text)
                   (apply #'max 1 (mapcar (lambda (it) (string-width (funcall text it)))
                                          hits))))
         (session (lambda (it) (contexture--visible (plist-get it :session))))
         (role (lambda (it) (contexture--name (or (plist-get it :role) "name"))))
         (width (min 24 (funcall column session))))
    (erase-buffer)
    (dolist (hit hits)
      (insert (contexture-session-search--line
               hit (contexture-session--fit (funcall session hit) width)
               (contexture-session--fit (funcall role hit) 9))))
    (contexture--show-hidden)
    (goto-char (point-min))))

(defun contexture-session-search--line (hit session role)
  "Return the line of HIT, with SESSION and ROLE as text."
  (propertize
   (concat (propertize session 'face 'bold) "  "
           (propertize role 'face 'contexture-session-role) " "
           (replace-regexp-in-string "[ \t\n\r]+" " " (or (plist-get hit :snippet) ""))
           "\n")
   'contexture-session-hit hit 'mouse-face 'highlight
   'help-echo "RET: show it in its session"))

(defun contexture-session--fit (text width)
  "Return TEXT in exactly WIDTH columns."
  (truncate-string-to-width text width nil ?\s t))

(defun contexture-session-search--revert (&rest _)
  "Repeat the search."
  (contexture-session-search contexture-session--query))

(defun contexture-session-search-visit (&optional event)
  "Show the message of the hit at point, or where EVENT is, in its session."
  (interactive (list last-nonmenu-event))
  (when (mouse-event-p event)
    (mouse-set-point event))
  (let ((hit (or (get-text-property (point) 'contexture-session-hit)
                 (user-error "There is no hit here"))))
    (contexture-session-transcript (plist-get hit :id) (plist-get hit :message))))

;;;; Exporting and importing

;;;###autoload
(defun contexture-session-export (session &optional format file)
  "Export all messages of SESSION, by default the current one.
FORMAT is `markdown', a readable transcript, or `json', which
`contexture-session-import' reads.  The text is shown in a buffer; with
a prefix argument it is written to FILE, as JSON if its name ends in
\".json\"."
  (interactive
   (if current-prefix-arg
       (let ((file (read-file-name "Export the session to file: ")))
         (list contexture-session--shown
               (if (string-suffix-p ".json" file t) 'json 'markdown) file))
     (list contexture-session--shown
           (intern (completing-read (format-prompt "Export as" "markdown")
                                    '("markdown" "json") nil t nil nil "markdown")))))
  (when (and file (file-exists-p file)
             (not (y-or-n-p (contexture--format "Replace %s? " (abbreviate-file-name file)))))
    (user-error "Nothing was written"))
  (contexture-session--call
   'export-session
   (contexture--plist :session session :format (or format 'markdown))
   (lambda (result)
     (if file
         (contexture-session--write-export result file)
       (contexture-session--show-export result (or format 'markdown))))))

(defun contexture-session--write-export (result file)
  "Write RESULT, of `export-session', to FILE."
  (let ((coding-system-for-write 'utf-8-unix))
    (write-region (plist-get result :text) nil file nil 'silent))
  (contexture--message "Wrote session %s (%s) to %s" (plist-get result :session)
           (contexture-session--many (plist-get result :messages) "message")
           (abbreviate-file-name file)))

(defun contexture-session--show-export (result format)
  "Show RESULT, of `export-session' in FORMAT, in a buffer of its own."
  (let ((buffer (get-buffer-create
                 (contexture--format "*contexture: export of %s*" (plist-get result :session)))))
    (with-current-buffer buffer
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (plist-get result :text))
        (contexture--show-hidden))
      (cond ((eq format 'json) (if (fboundp 'js-json-mode) (js-json-mode) (js-mode)))
            ((fboundp 'markdown-mode) (markdown-mode))
            (t (text-mode)))
      (setq-local buffer-file-coding-system 'utf-8-unix)
      (set-buffer-modified-p nil)
      (goto-char (point-min)))
    (pop-to-buffer buffer)))

(provide 'contexture-session-show)
;;; contexture-session-show.el ends here
