;;; contexture-explain.el --- Why a window is as it is  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-explain' shows the report of a window of a session: what
;; each section has in it, what was left out, why, and at what cost.
;; Neighbours with the same outcome share a line; opening a line fetches
;; its messages and their scores.

;;; Code:

(require 'contexture-session)
(require 'contexture-session-show)
(eval-when-compile (require 'subr-x))

(defface contexture-explain-kept '((t :inherit success))
  "Face of the mark for a part that is in a window."
  :group 'contexture-session)

(defface contexture-explain-shortened '((t :inherit warning))
  "Face of the mark for a part that is shortened in a window."
  :group 'contexture-session)

(defface contexture-explain-dropped '((t :inherit error))
  "Face of the mark for a part that was left out of a window."
  :group 'contexture-session)

(defconst contexture-explain-buffer "*contexture: explain*"
  "Name of the buffer that shows why a window is as it is.")

(defconst contexture-explain--most 200
  "Maximum number of messages of one line that are shown with their text.")

(defvar-local contexture-explain--back 1
  "Number of the window that is shown; 1 is the last one.")

(defvar-local contexture-explain--reports nil
  "Reports of the last windows, back to the one shown, the last one first.")

(defvar contexture-explain-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "TAB") #'contexture-explain-toggle)
    (define-key map (kbd "RET") #'contexture-explain-visit)
    (define-key map [mouse-2] #'contexture-explain-visit)
    (define-key map [follow-link] 'mouse-face)
    (define-key map "n" #'contexture-explain-next)
    (define-key map "p" #'contexture-explain-previous)
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
\\[contexture-explain-older] and \\[contexture-explain-newer] go to the \
previous and the next window,
\\[revert-buffer] fetches the last one again.

In front of each line, + means in the window, ~ shortened, and - left out.

\\{contexture-explain-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq-local truncate-lines t
              revert-buffer-function #'contexture-explain--revert))

;;;###autoload
(defun contexture-explain (&optional back session)
  "Show why each part of the last window is in or out.
With a prefix argument BACK, count back that many windows: 2 is the one
before the last.  SESSION, an id, defaults to this buffer's session, else
the current one."
  (interactive (list (prefix-numeric-value current-prefix-arg)))
  (when (and back (< back 1))
    (user-error "Windows are counted from 1, the last one"))
  (contexture-explain--fetch (or back 1) (or session contexture-session--shown) nil))

(defun contexture-explain--fetch (back session buffer)
  "Fetch the report of the window BACK of SESSION, an id or nil.
Show it in BUFFER, or in a new window if that is nil."
  (contexture-session--call
   'explain-window (contexture--plist :session session :limit back)
   (lambda (reports)
     (cond ((null reports)
            (message "No window of this session was built since the server \
started; ask something first"))
           ((and buffer (not (buffer-live-p buffer))))
           ((< (length reports) back)
            (contexture--message "Only %s known"
                     (if (cdr reports) (format "%d windows are" (length reports))
                       "the last window is")))
           (t
            (unless buffer
              (pop-to-buffer (get-buffer-create contexture-explain-buffer)))
            (with-current-buffer (or buffer contexture-explain-buffer)
              (contexture-explain--show back session reports)))))))

(defun contexture-explain--show (back session reports)
  "Show the window BACK of SESSION, the last one of REPORTS."
  (unless (derived-mode-p 'contexture-explain-mode)
    (contexture-explain-mode))
  (let ((report (nth (1- back) reports))
        (inhibit-read-only t))
    (setq contexture-explain--back back
          contexture-explain--reports reports
          contexture-session--shown session
          header-line-format
          (contexture-session--header
           (format "%s of session %s, %s" (contexture-explain--which back)
                   (plist-get report :session)
                   (contexture-session--time (plist-get report :at)))))
    (erase-buffer)
    (insert (contexture--visible (contexture-explain--summary report) t))
    (dolist (section (plist-get report :sections))
      (insert (contexture--visible (contexture-explain--section section report) t)))
    (goto-char (point-min))
    (contexture-explain-next)))

(defun contexture-explain--which (back)
  "Return the name of the window BACK."
  (pcase back
    (1 "The last window")
    (2 "The window before the last")
    (_ (format "The window %d before the last" (1- back)))))

;;;; The report

(defun contexture-explain--summary (report)
  "Return the summary of the window of REPORT."
  (concat
   (contexture-explain--row
    "Tokens" (format "%s of %s allowed, %s were offered%s"
                     (contexture-session--number (plist-get report :tokens-after))
                     (contexture-session--number (plist-get report :max-tokens))
                     (contexture-session--number (plist-get report :tokens-before))
                     (if (plist-get report :exact) "" " (estimated)")))
   (contexture-explain--row
    "Chosen by" (format "%s%s" (contexture--name (plist-get report :strategy))
                        (if-let* ((phase (plist-get report :phase)))
                            (format ", for the phase %s" (contexture--name phase))
                          "")))
   (contexture-explain--row
    "Stable" (contexture-explain--stable (plist-get report :stable)))
   (if-let* ((missing (plist-get report :missing)))
       (contexture-explain--row
        "Missing" (format "%s, which the phase wants"
                          (mapconcat #'contexture--name missing ", ")))
     "")
   (contexture-explain--row "Left out" (contexture-explain--first-out report))
   (if-let* ((items (contexture-explain--items report)))
       (contexture-explain--row "Items" items)
     "")
   (propertize (format "\n  %-18s %13s %11s  %s\n" "Part" "Tokens" "Score" "Why")
               'face 'shadow)))

(defun contexture-explain--row (name text)
  "Return a line with TEXT under NAME."
  (concat (propertize (format "%-11s" name) 'face 'bold) text "\n"))

(defun contexture-explain--stable (stable)
  "Return a phrase for STABLE, the start that a window shares with the last one."
  (let ((bytes (plist-get stable :bytes))
        (first (plist-get stable :first-difference)))
    (cond ((null stable) "no window of this session was built before")
          ((null first) (format "the same as the window before, %s"
                                (contexture-session--many bytes "byte")))
          (t (format "%s (%s) as before; first changed byte %s%s"
                     (contexture-session--many bytes "byte")
                     (contexture-session--many (plist-get stable :tokens) "token")
                     (contexture-session--number first)
                     (if-let* ((section (plist-get stable :section)))
                         (concat ", in " (contexture--name section))
                       ", where this window ends"))))))

(defun contexture-explain--first-out (report)
  "Return a phrase for the parts left out of the window of REPORT.
If the strategy scores, the parts with the lowest scores come first."
  (let* ((out (cl-remove-if-not (lambda (part) (eq (plist-get part :fate) :dropped))
                                (plist-get report :parts)))
         (score (lambda (part) (or (plist-get part :lowest-score) 0)))
         (sorted (cl-stable-sort (copy-sequence out) #'< :key score))
         (units (apply #'+ (mapcar (lambda (part) (or (plist-get part :units) 1)) out))))
    (if (null out) "nothing"
      (format "%s; first %s%s" (contexture--count units "part")
              (mapconcat (lambda (part)
                           (concat (plist-get part :what)
                                   (if-let* ((lowest (plist-get part :lowest-score)))
                                       (format " (%s)" (contexture-explain--score lowest))
                                     "")))
                         (seq-take sorted 3) ", ")
              (if (nthcdr 3 sorted) ", ..." "")))))

(defun contexture-explain--items (report)
  "Return a phrase for the items that are cut in the window of REPORT, or nil."
  (let ((items (cl-remove-if (lambda (item) (eq (plist-get item :fate) :kept))
                             (plist-get report :items))))
    (and items
         (format "%s not whole: %s%s" (contexture--count (length items) "item")
                 (mapconcat (lambda (item)
                              (format "%s %s, %s" (plist-get item :id)
                                      (contexture--name (plist-get item :fate))
                                      (plist-get item :reason)))
                            (seq-take items 5) "; ")
                 (if (nthcdr 5 items) "; ..." "")))))

(defun contexture-explain--score (number)
  "Return NUMBER, a score, as text with as many digits as it needs."
  (format (if (< (abs number) 10) "%.2f" "%.0f") number))

(defun contexture-explain--section (section report)
  "Return the lines of SECTION of REPORT."
  (let ((name (plist-get section :section)))
    (concat
     "\n" (propertize (contexture--name name) 'face 'contexture-session-heading)
     (format "  %s\n" (contexture-session--many-of (plist-get section :before)
                                                   (plist-get section :after)))
     (mapconcat #'contexture-explain--line
                (cl-remove-if-not (lambda (part) (eq name (plist-get part :section)))
                                  (plist-get report :parts))
                ""))))

(defun contexture-explain--line (part)
  "Return the line of PART, neighbours with the same outcome."
  (propertize
   (concat (contexture-explain--mark part) " "
           (contexture-session--fit (plist-get part :what) 18) " "
           (format "%13s " (contexture-explain--tokens part))
           (propertize (format "%11s  " (contexture-explain--scores part))
                       'face 'shadow)
           (plist-get part :reason)
           "\n")
   'contexture-explain-part part
   'mouse-face 'highlight
   'help-echo "TAB: open it; RET: show its text"))

(defun contexture-explain--mark (part)
  "Return the mark for the outcome of PART."
  (pcase (plist-get part :fate)
    (:kept (propertize "+" 'face 'contexture-explain-kept))
    (:shortened (propertize "~" 'face 'contexture-explain-shortened))
    (_ (propertize "-" 'face 'contexture-explain-dropped))))

(defun contexture-explain--tokens (part)
  "Return the tokens of PART, and what is left of them if that differs."
  (let ((before (plist-get part :before))
        (after (plist-get part :after)))
    (if (eql before after)
        (contexture-session--number before)
      (format "%s → %s" (contexture-session--number before)
              (contexture-session--number after)))))

(defun contexture-explain--scores (part)
  "Return the scores of PART, or the empty string if there are none."
  (if (null (plist-get part :lowest-score)) ""
    (let ((lowest (contexture-explain--score (plist-get part :lowest-score)))
          (highest (contexture-explain--score (plist-get part :highest-score))))
      (if (equal lowest highest) lowest
        (concat lowest "–" highest)))))

;;;; Moving

(defun contexture-explain--part ()
  "Return the part of the line at point."
  (or (get-text-property (point) 'contexture-explain-part)
      (user-error "There is no part of the window here")))

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
    (let ((place (save-excursion
                   (cl-loop while (and (= 0 (forward-line direction)) (not (eobp)))
                            when (get-text-property (point) 'contexture-explain-part)
                            return (point)))))
      (when place (goto-char place)))))

(defun contexture-explain-older ()
  "Show the window that was built before this one."
  (interactive)
  (contexture-explain--fetch (1+ contexture-explain--back) contexture-session--shown
                             (current-buffer)))

(defun contexture-explain-newer ()
  "Show the window that was built after this one."
  (interactive)
  (when (= contexture-explain--back 1)
    (user-error "This is the last window"))
  (contexture-explain--fetch (1- contexture-explain--back) contexture-session--shown
                             (current-buffer)))

(defun contexture-explain--revert (&rest _)
  "Show the last window."
  (contexture-explain--fetch 1 contexture-session--shown (current-buffer)))

;;;; Opening a line

(defun contexture-explain--messages (part)
  "Return parameters that choose the messages of PART, or nil for other text."
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
    (contexture-session--show-messages
     (plist-get (nth (1- contexture-explain--back) contexture-explain--reports) :session)
     (or (contexture-explain--messages part)
         (contexture--user-error "This is %s, not a message"
                     (pcase (plist-get part :what)
                       ("note" "a note about what is left out")
                       (what (format "the text of %s" what))))))))

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
         (session (contexture--plist :session (plist-get report :session))))
    (contexture-session--call
     'explain-window (append session (list :limit contexture-explain--back :explain t))
     (lambda (whole)
       (let ((units (contexture-explain--units
                     part report (cl-find-if
                                  (lambda (it) (contexture-explain--same-p it report))
                                  whole))))
         (contexture-session--call
          'get-messages
          (append session '(:view :log) (contexture-explain--first-messages part))
          (lambda (messages)
            (when (buffer-live-p buffer)
              (with-current-buffer buffer
                (contexture-explain--insert part units messages))))))))))

(defun contexture-explain--first-messages (part)
  "Return parameters that choose the messages of PART; if too many, the first."
  (let ((params (contexture-explain--messages part)))
    (if (> (or (plist-get part :units) 1) contexture-explain--most)
        (list :ids (list (plist-get params :from)))
      params)))

(defun contexture-explain--same-p (a b)
  "Return non-nil if A and B are reports of the same window."
  (cl-every (lambda (key) (equal (plist-get a key) (plist-get b key)))
            '(:at :strategy :max-tokens :tokens-before :tokens-after :sections)))

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
        (known (make-hash-table :test #'equal))
        (inhibit-read-only t))
    (dolist (message messages)
      (puthash (plist-get message :id) message known))
    (when place
      (save-excursion
        (goto-char place)
        (forward-line)
        (unless (get-text-property (point) 'contexture-explain-detail)
          (insert
           (propertize
            (if units
                (mapconcat (lambda (unit) (contexture-explain--unit unit known))
                           units "")
              "    The server no longer keeps the details of this window.\n")
            'contexture-explain-detail t)))))))

(defun contexture-explain--unit (unit known)
  "Return lines for UNIT, a part of a full report.
KNOWN is a hash table from ids to messages."
  (propertize
   (concat
    "    " (contexture-explain--mark unit) " "
    (contexture-session--fit (plist-get unit :what) 14) " "
    (format "%13s\n" (contexture-explain--tokens unit))
    (contexture-explain--score-parts (plist-get unit :score))
    (mapconcat
     (lambda (id)
       (if-let* ((message (gethash id known)))
           (format "      %s: %s\n"
                   (propertize (contexture--name (plist-get message :role))
                               'face 'contexture-session-role)
                   (contexture-explain--words message))
         ""))
     (plist-get unit :ids) ""))
   'contexture-explain-part unit
   'mouse-face 'highlight))

(defun contexture-explain--words (message)
  "Return the beginning of the text of MESSAGE, or of its calls."
  (let ((text (string-trim (replace-regexp-in-string
                            "[ \t\n\r]+" " "
                            (substring (plist-get message :content) 0
                                       (min 400 (length (plist-get message :content))))))))
    (truncate-string-to-width
     (contexture--visible
      (if (and (string-empty-p text) (plist-get message :tool-calls))
          (mapconcat (lambda (call) (concat "→ " (plist-get call :name)))
                     (plist-get message :tool-calls) " ")
        text))
     72 nil nil t)))

(defun contexture-explain--score-parts (score)
  "Return SCORE with its parts, as text."
  (if (null score) ""
    (format "      score %.3g = %s\n" (plist-get score :total)
            (mapconcat (pcase-lambda (`(,name ,value))
                         (format "%s %.3g" (contexture--name name) value))
                       (seq-partition (plist-get score :parts) 2)
                       " + "))))

(provide 'contexture-explain)
;;; contexture-explain.el ends here
