;;; contexture-point.el --- What is at point where code is listed or compared  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; In a buffer of differences, of search results or of a terminal, the text
;; around point is not what a person means.  This file finds what is meant:
;; the hunk, the commit, the definition that a line names, the last command
;; with its output.  `contexture-add-dwim' adds it; `contexture-explain-code',
;; `contexture-review-code' and `contexture-fix-error' ask about it.
;;
;; A subject is a plist.  :params are the parameters of `add-item' that add its
;; text.  :place is (BUFFER . POSITION) or (FILE . LINE) of the code that it is
;; about, if there is one.  A subject with :git, arguments of Git, in the
;; folder :root has no :params until Git has written its text.
;;
;; A remark of a review is shown below the line that it is about.  There you
;; have it applied, or dismiss it.

;;; Code:

(require 'contexture)
(require 'contexture-sources)

(declare-function compilation--ensure-parse "compile" (limit))
(declare-function diff-bounds-of-file "diff-mode" ())
(declare-function diff-bounds-of-hunk "diff-mode" ())
(declare-function diff-hunk-file-names "diff-mode" (&optional old))
(declare-function dired-get-marked-files "dired"
                  (&optional localp arg filter distinguish-one-marked error))
(declare-function eieio-oref "eieio-core" (obj slot))
(declare-function flycheck-error-buffer "ext:flycheck" t t)
(declare-function flycheck-error-line "ext:flycheck" t t)
(declare-function flycheck-error-message "ext:flycheck" t t)
(declare-function flymake-diagnostic-beg "flymake" t t)
(declare-function flymake-diagnostic-buffer "flymake" t t)
(declare-function log-view-current-tag "log-view" (&optional pos))
(declare-function log-view-get-marked "log-view" ())
(declare-function magit-current-section "ext:magit-section" ())
(declare-function magit-region-sections "ext:magit-section" (&optional condition multiple))
(declare-function magit-section-show "ext:magit-section" (section))
(declare-function org-element-at-point "org-element" t)
(declare-function org-element-lineage "ext:org-element-ast" t t)
(declare-function org-table-begin "org-table" (&optional table-type))
(declare-function org-table-end "org-table" (&optional table-type))
(declare-function smerge-match-conflict "smerge-mode" ())
(declare-function vc-annotate-extract-revision-at-line "vc-annotate" ())
(defvar comint-last-input-start)
(defvar eshell-last-input-start)
(defvar eshell-last-output-end)
(defvar eww-data)
(defvar help-xref-stack-item)
(defvar Info-current-file)
(defvar Info-current-node)
(defvar log-view-vc-backend)
(defvar magit-buffer-range)
(defvar magit-buffer-revision)
(defvar Man-arguments)

(defconst contexture-point--finders
  '((diff-mode . contexture-point--diff)
    (magit-section-mode . contexture-point--magit)
    (log-view-mode . contexture-point--log)
    (vc-annotate-mode . contexture-point--annotated)
    (smerge-mode . contexture-point--conflict)
    (occur-mode . contexture-point--occurrences)
    (xref--xref-buffer-mode . contexture-point--references)
    (compilation-mode . contexture-point--errors)
    (flymake-diagnostics-buffer-mode . contexture-point--flymake)
    (flycheck-error-list-mode . contexture-point--flycheck)
    (dired-mode . contexture-point--files)
    (org-mode . contexture-point--table)
    (Info-mode . contexture-point--page)
    (help-mode . contexture-point--page)
    (Man-mode . contexture-point--page)
    (woman-mode . contexture-point--page)
    (eww-mode . contexture-point--page)
    (comint-mode . contexture-point--command)
    (eshell-mode . contexture-point--command)
    (term-mode . contexture-point--command)
    (vterm-mode . contexture-point--command))
  "Alist from modes, major or minor, to functions that find the subjects at point.")

(defun contexture-point-subjects ()
  "Return the subjects at point, or nil where the text itself is meant."
  (cl-loop for (mode . finder) in contexture-point--finders
           when (or (derived-mode-p mode) (and (boundp mode) (symbol-value mode)))
           thereis (funcall finder)))

(defun contexture-point-with (subjects function)
  "Call FUNCTION with SUBJECTS once each has its text.
It is called at once if all have.  Otherwise Git runs in the background."
  (let ((left (cl-remove-if-not (lambda (it) (plist-get it :git)) subjects)))
    (if (null left)
        (funcall function subjects)
      (let* ((subject (car left))
             (origin (current-buffer))
             (root (plist-get subject :root))
             (buffer (generate-new-buffer " *contexture git*"))
             (process-environment (contexture--git-environment))
             (default-directory root))
        (make-process :name "contexture git" :buffer buffer :noquery t
                      :connection-type 'pipe :sentinel #'ignore
                      :command `(,@(contexture--git root) ,@(plist-get subject :git)))
        (contexture-sources--when-finished
         buffer
         (lambda ()
           (let ((text (with-current-buffer buffer
                         (buffer-substring-no-properties (point-min) (point-max)))))
             (kill-buffer buffer)
             (contexture--with-live-buffer origin
               (contexture-point-with
                (cl-substitute (contexture-point--commit-read subject text) subject subjects)
                function)))))))))

(defun contexture-point-code (subject)
  "Return (BUFFER BEG END) for the code that SUBJECT is about, or nil.
That is the definition around its place, or else the lines around it."
  (pcase (plist-get subject :place)
    (`(,place . ,where)
     (when-let* ((buffer (if (bufferp place) place
                           (and place (contexture--visit-quietly place)))))
       (with-current-buffer buffer
         (contexture--widened
           (if (bufferp place) (goto-char where)
             (contexture--line-position where))
           (let ((definition (contexture-defun-at-point)))
             (list buffer
                   (or (plist-get definition :beg) (line-beginning-position -9))
                   (or (plist-get definition :end) (line-beginning-position 12))))))))))

;;;; Making subjects

(defun contexture-point--text (text name place &rest metadata)
  "Return a subject of TEXT, differences called NAME, at PLACE.
METADATA are further facts, keywords and values."
  (list :params (contexture-sources--params
                 :text :diff text
                 (append (contexture--plist
                          :buffer name
                          :project (plist-get (contexture--buffer-metadata) :project))
                         metadata '(:language "diff")))
        :place place))

(defun contexture-point--code (place)
  "Return a subject of the code at PLACE, or nil if there is none."
  (pcase (contexture-point-code (list :place place))
    (`(,buffer ,beg ,end)
     (with-current-buffer buffer
       (contexture--widened
         (goto-char beg)
         (list :params (contexture--capture beg end :region) :place place))))))

(defun contexture-point--error (text place)
  "Return the subjects of an error, TEXT, and of the code at its PLACE."
  (cons (list :params (contexture-sources--params
                       :error :diagnostic text
                       (pcase place
                         (`(,(and (pred bufferp) buffer) . ,where)
                          (with-current-buffer buffer
                            (let ((line (line-number-at-pos where t)))
                              (append (list :start-line line :end-line line)
                                      (contexture-sources--buffer-metadata
                                       :filename :project :buffer :mode)
                                      '(:language "text")))))))
              :place place)
        (ensure-list (and place (list (contexture-point--code place))))))

(defun contexture-point--each-line (function)
  "Return what FUNCTION returns for the lines of the region, or for this line.
FUNCTION returns a list of subjects.  Each subject is returned once."
  (let (found)
    (save-excursion
      (let ((end (if (use-region-p) (copy-marker (region-end)) (line-end-position))))
        (when (use-region-p) (goto-char (region-beginning)))
        (forward-line 0)
        (cl-loop do (setq found (append found (funcall function)))
                 while (and (= 0 (forward-line)) (not (eobp)) (< (point) end)))))
    (cl-delete-duplicates (delq nil found) :key (lambda (it) (plist-get it :params))
                          :test #'equal :from-end t)))

;;;; Differences

(defun contexture-point--diff ()
  "Return the hunk around point in `diff-mode', or on its header the file's part."
  (unless (use-region-p)
    (require 'diff-mode)
    (let ((here (line-beginning-position)))
      (pcase (or (contexture-point--bounds-around here #'diff-bounds-of-hunk)
                 (contexture-point--bounds-around here #'diff-bounds-of-file))
        (`(,beg ,end)
         (list (contexture-point--part
                (buffer-substring-no-properties beg end)
                (save-excursion (goto-char beg) (ignore-errors (diff-hunk-file-names))))))))))

(defun contexture-point--bounds-around (position function)
  "Return the bounds that FUNCTION finds, a list, if POSITION is between them."
  (save-excursion
    (pcase (ignore-errors (funcall function))
      ((and `(,beg ,end) (guard (and (<= beg position) (< position end))))
       (list beg end)))))

(defun contexture-point--part (text names)
  "Return the subject of TEXT, a part of differences of the file with NAMES.
The first of NAMES that is a file counts, with or without its first folder."
  (let* ((file (cl-loop for name in names
                        for short = (replace-regexp-in-string "\\`[^/]*/" "" name)
                        thereis (cl-loop for each in (list short name)
                                         for file = (contexture-point--file each)
                                         when file return file)))
         (lines (and (string-match "^@@ -[0-9,]+ \\+\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)? @@" text)
                     (let ((start (string-to-number (match-string 1 text)))
                           (count (string-to-number (or (match-string 2 text) "1"))))
                       (list start (max start (+ start count -1))))))
         (one (not (string-match-p "^@@ " text (if lines (match-end 0) 0)))))
    (apply #'contexture-point--text text nil
           (and file (cons file (or (contexture-point--first-change text) 1)))
           (append (contexture--plist :filename (or file (car names)))
                   (and lines one
                        (list :start-line (car lines) :end-line (cadr lines)))))))

(defun contexture-point--first-change (text)
  "Return the line of the new file at which the first hunk of TEXT changes it."
  (with-temp-buffer
    (insert text)
    (goto-char (point-min))
    (when (re-search-forward "^@@ -[0-9,]+ \\+\\([0-9]+\\).*\n" nil t)
      (let ((line (string-to-number (match-string 1))))
        (while (eq (char-after) ?\s)
          (cl-incf line)
          (forward-line))
        (max 1 line)))))

(defun contexture-point--file (name)
  "Return the file called NAME, from outside, in this project, or nil."
  (cl-loop for folder in (list default-directory (contexture--project-root))
           for file = (and folder (contexture--outside-file name folder folder))
           when (and file (file-exists-p file)) return file))

(defun contexture-point--conflict ()
  "Return the conflict around point, with both sides, in `smerge-mode'."
  (unless (use-region-p)
    (save-excursion
      (save-match-data
        (pcase (and (ignore-errors (smerge-match-conflict) t) (match-data t))
          (`(,beg ,end . ,_)
           (list (list :params (contexture--capture beg end :region)
                       :place (cons (current-buffer) beg)))))))))

;;;; Commits

(defun contexture-point--commit (revision &optional file)
  "Return the subject of the commit REVISION, from outside, or of its FILE only.
Return nil if REVISION cannot be one."
  (when-let* (((not (contexture-outside--taken-p default-directory)))
              (root (locate-dominating-file default-directory ".git"))
              ((stringp revision))
              ((string-match-p "\\`[[:alnum:]][^[:space:][:cntrl:]:]*\\'" revision)))
    (list :root root :revision revision
          :git `("show" ,@contexture--git-differences "--format=medium"
                 "--stat" "--patch" "-m" "--first-parent" ,revision
                 "--" ,@(and file (list file))))))

(defun contexture-point--commit-read (subject text)
  "Return SUBJECT with TEXT, which Git wrote about its revision.
Signal an error if Git wrote nothing."
  (when (string-blank-p text)
    (contexture--user-error "Git has nothing about %s" (plist-get subject :revision)))
  (let ((name (if (string-match "^\\(?:    \\)\\(.+\\)$" text) (match-string 1 text) ""))
        (hash (if (string-match "\\`commit \\([[:xdigit:]]\\{10\\}\\)" text)
                  (match-string 1 text)
                (plist-get subject :revision))))
    (contexture-point--text text (format "commit %s (%s)" hash name) nil)))

(defun contexture-point--log ()
  "Return the marked commits of this log, or the one at point."
  (when (eq (bound-and-true-p log-view-vc-backend) 'Git)
    (or (mapcar #'contexture-point--commit (log-view-get-marked))
        (contexture-point--each-line
         (lambda ()
           (let ((it (contexture-point--commit (ignore-errors (log-view-current-tag)))))
             (and it (list (plist-put it :params (plist-get it :revision))))))))))

(defun contexture-point--annotated ()
  "Return the commit that the line at point is from."
  (pcase (ignore-errors (vc-annotate-extract-revision-at-line))
    (`(,revision . ,_) (ensure-list (list (contexture-point--commit revision))))))

;;;; Magit

(defun contexture-point--magit ()
  "Return what is at point in a buffer of Magit: hunk, file or commit.
With a region, return the hunks, files or commits in it.  Elsewhere in a buffer
of differences, return all of them."
  (or (cl-loop for section in (or (magit-region-sections)
                                  (list (magit-current-section)))
               append (cl-loop for each = section then (contexture-point--slot each 'parent)
                               while each
                               thereis (contexture-point--section each)))
      (contexture-point--magit-buffer)))

(defun contexture-point--slot (section slot)
  "Return what is in SLOT of SECTION, a section of Magit."
  (eieio-oref section slot))            ; the compiler knows no slots of Magit

(defun contexture-point--section (section)
  "Return the subjects of SECTION, a section of Magit, or nil."
  (let ((value (contexture-point--slot section 'value)))
    (pcase (contexture-point--slot section 'type)
      ('hunk (list (contexture-point--part
                    (contexture-point--section-text section)
                    (list (contexture-point--slot (contexture-point--slot section 'parent) 'value)))))
      ((and 'file (guard (stringp value)))
       (when (contexture-point--slot section 'washer) (magit-section-show section))
       (if (contexture-point--slot section 'children)
           (list (contexture-point--part (contexture-point--section-text section)
                                         (list value)))
         (when-let* ((file (contexture-point--file value)))
           (list (contexture-point--whole-file file)))))
      ((or 'unstaged 'staged)
       (cl-mapcan #'contexture-point--section (contexture-point--slot section 'children)))
      ((or 'commit 'module-commit 'stash 'branch 'tag)
       (when-let* ((commit (contexture-point--commit value))) (list commit))))))

(defun contexture-point--section-text (section)
  "Return the text of SECTION, also of what is folded."
  (buffer-substring-no-properties (contexture-point--slot section 'start)
                                  (contexture-point--slot section 'end)))

(defun contexture-point--magit-buffer ()
  "Return the commit or the differences that this buffer of Magit shows, or nil."
  (cond ((when-let* ((commit (contexture-point--commit (bound-and-true-p magit-buffer-revision))))
           (list commit)))
        ((derived-mode-p 'magit-diff-mode)
         (list (contexture-point--text
                (buffer-substring-no-properties (point-min) (point-max))
                (format "changes %s" (or (bound-and-true-p magit-buffer-range) "here")) nil)))))

;;;; Lists of places

(defun contexture-point--occurrences ()
  "Return the code of the lines of `occur' at point or in the region."
  (contexture-point--each-line
   (lambda ()
     (let* ((target (get-text-property (point) 'occur-target))
            (marker (if (consp target) (caar target) target)))
       (and (markerp marker) (marker-buffer marker)
            (list (contexture-point--code
                   (cons (marker-buffer marker) (marker-position marker)))))))))

(defun contexture-point--references ()
  "Return the code of the references at point or in the region."
  (contexture-point--each-line
   (lambda ()
     (when-let* ((item (get-text-property (point) 'xref-item))
                 (marker (contexture-symbol--marker item)))
       (list (contexture-point--code
              (cons (marker-buffer marker) (marker-position marker))))))))

(defun contexture-point--errors ()
  "Return the errors of a compilation, each with its code, or the code of matches.
They are those at point or in the region."
  (require 'compile)
  (contexture--inertly (compilation--ensure-parse (point-max)))
  (contexture-point--each-line
   (lambda ()
     (when-let* ((position (if (use-region-p)
                               (and (contexture-sources--message-here) (point))
                             (contexture-sources--error-position))))
       (let* ((place (contexture-sources--error-place position))
              (place (and (car place) (cons (car place) (or (cdr place) 1))))
              (code (and place (contexture-point--code place))))
         (if (and code (derived-mode-p 'grep-mode))
             (list code)
           (list (list :params (contexture-sources--error-params position) :place place)
                 code)))))))

(defun contexture-point--flymake ()
  "Return the diagnostics in Flymake's list at point or in the region, with code."
  (contexture-point--each-line
   (lambda ()
     (when-let* ((diagnostic (plist-get (tabulated-list-get-id) :diagnostic))
                 (buffer (flymake-diagnostic-buffer diagnostic))
                 ((buffer-live-p buffer)))
       (contexture-point--error
        (with-current-buffer buffer
          (contexture--widened (contexture-sources--diagnostic-text diagnostic)))
        (cons buffer (flymake-diagnostic-beg diagnostic)))))))

(defun contexture-point--flycheck ()
  "Return the errors in Flycheck's list at point or in the region, with code."
  (contexture-point--each-line
   (lambda ()
     (when-let* ((problem (tabulated-list-get-id))
                 (buffer (flycheck-error-buffer problem))
                 ((buffer-live-p buffer)))
       (let ((line (or (flycheck-error-line problem) 1)))
         (contexture-point--error
          (format "line %d: %s\n" line (flycheck-error-message problem))
          (with-current-buffer buffer
            (contexture--widened
              (cons buffer (contexture--line-position line))))))))))

(defun contexture-point--files ()
  "Return the marked files of this Dired buffer, or the one at point."
  (cl-loop for file in (ignore-errors (dired-get-marked-files))
           when (file-regular-p file) collect (contexture-point--whole-file file)))

(defun contexture-point--whole-file (file)
  "Return the subject of the whole FILE."
  (let ((buffer (or (contexture--visit-quietly file)
                    (contexture--user-error "%s is no text" (contexture--abbreviate file)))))
    (list :params (contexture--capture-file buffer nil nil) :place (cons buffer 1))))

;;;; Pages, tables and terminals

(defun contexture-point--table ()
  "Return the table around point in Org, or nil."
  (when (and (not (use-region-p))
             (org-element-lineage (org-element-at-point) '(table) t))
    (list (list :params (contexture--capture (org-table-begin) (org-table-end) :region)
                :place (cons (current-buffer) (point))))))

(defun contexture-point--page ()
  "Return the page that this buffer shows, under the name of the page."
  (unless (use-region-p)
    (let ((params (contexture--capture (point-min) (point-max) :buffer)))
      (plist-put (plist-get params :metadata) :buffer (contexture-point--page-name))
      (list (list :params params)))))

(defun contexture-point--page-name ()
  "Return the name of the page that this buffer shows."
  (cond ((derived-mode-p 'Info-mode)
         (format "(%s)%s" (file-name-base Info-current-file) Info-current-node))
        ((derived-mode-p 'Man-mode) (concat "man " Man-arguments))
        ((derived-mode-p 'eww-mode)
         (format "%s <%s>" (plist-get eww-data :title) (plist-get eww-data :url)))
        ((and (derived-mode-p 'help-mode)
              (bound-and-true-p help-xref-stack-item)
              (symbolp (cadr help-xref-stack-item)))
         (format "Help on %s" (cadr help-xref-stack-item)))
        (t (buffer-name))))

(defun contexture-point--command ()
  "Return the last command of this terminal or REPL with its output, or nil."
  (unless (use-region-p)
    (save-excursion
      (pcase (contexture-point--command-bounds)
        ((and `(,beg . ,end) (guard (< beg end)))
         (list (list :params (contexture--capture beg end :region))))))))

(defun contexture-point--command-bounds ()
  "Return the bounds of the last command and its output, as a pair, or nil."
  (let ((inhibit-field-text-motion t)   ; a prompt is a field
        (line (lambda (position) (goto-char position) (line-beginning-position))))
    (cond ((derived-mode-p 'comint-mode)
           (when-let* ((process (get-buffer-process (current-buffer))))
             (cons (funcall line comint-last-input-start)
                   (funcall line (process-mark process)))))
          ((derived-mode-p 'eshell-mode)
           (cons (funcall line eshell-last-input-start)
                 (funcall line eshell-last-output-end)))
          (t (contexture-point--screen-command)))))

(defconst contexture-point--prompt "^[^\n]*?[#$%>❯λ] +[^ \n]"
  "Regexp for the beginning of a prompt with a command, where nothing tells.")

(defun contexture-point--screen-command ()
  "Return the bounds of the last command on this screen, as a pair, or nil."
  (goto-char (point-max))
  (skip-chars-backward " \n")
  (let ((end (if (save-excursion (forward-line 0) (looking-at-p "[^\n]*?[#$%>❯λ] *$"))
                 (line-beginning-position)
               (min (point-max) (1+ (line-end-position))))))
    (goto-char end)
    (and (re-search-backward contexture-point--prompt nil t)
         (cons (match-beginning 0) end))))

;;; Remarks of a review, at their lines

(defface contexture-remark '((t :inherit warning))
  "Face of a review's remark below the line that it is about."
  :group 'contexture)

(defvar contexture-remark-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'contexture-remark-apply)
    (define-key map (kbd "C-c C-k") #'contexture-remark-dismiss)
    (define-key map (kbd "C-c C-n") #'contexture-remark-next)
    (define-key map (kbd "C-c C-p") #'contexture-remark-previous)
    map)
  "Keymap of the lines that a review has remarks about.")

(defvar contexture-remark--all nil
  "Overlays of all remarks, those of a review in the order of its answer.")

(defconst contexture-remark--regexp
  (rx bol (* blank) (? (or (any "-*+") (seq (+ digit) (any ".)"))) (+ blank)) (* (any "*`_["))
      (? (group (+ (not (any ":*`\n[" blank)))) ":") (? (or "line " "Line " "L"))
      (group (+ digit)) (? (any "-–") (+ digit)) (* (any "]*`_")) ":" (* (any "*`_")) (* blank)
      (group (+ nonl) (* "\n" (+ blank) (any "[:alnum:]`*(") (+ nonl))))
  "Regexp for a remark: file, if it is named, line, and text.")

(defun contexture-point-numbered (params)
  "Return the text of PARAMS, parameters of `add-item', with numbers of lines.
In differences, the lines of the new text have their numbers."
  (let* ((metadata (plist-get params :metadata))
         (diff (equal (plist-get metadata :language) "diff"))
         (number (and (not diff) (or (plist-get metadata :start-line) 1))))
    (mapconcat
     (lambda (line)
       (cond ((and diff (string-match "\\`@@ -[0-9,]+ \\+\\([0-9]+\\)" line))
              (setq number (string-to-number (match-string 1 line)))
              line)
             ((and diff (not (string-match-p "\\`[ +]" line))) line)
             ((null number) line)
             (t (prog1 (format "%5d %s" number line) (cl-incf number)))))
     (split-string (string-remove-suffix "\n" (plist-get params :content)) "\n")
     "\n")))

(defun contexture-remark--places (about)
  "Return an alist from names of files to what has their text, for ABOUT.
ABOUT is a list of subjects, or bounds in this buffer.  A value is a file or a
buffer.  Remarks about other files are not shown."
  (if (not (consp (car about)))
      (list (cons (or (buffer-file-name (contexture--base-buffer)) (buffer-name))
                  (contexture--base-buffer)))
    (cl-loop for subject in about
             for place = (car (plist-get subject :place))
             when place collect (cons (if (bufferp place)
                                          (or (buffer-file-name place) (buffer-name place))
                                        place)
                                      place))))

(defun contexture-remark--watch (places answer state)
  "Show the remarks in ANSWER at lines of PLACES once STATE is `done'.
PLACES is as `contexture-remark--places' returns it."
  (when (and (eq state 'done) places)
    (let ((shown 0))
      (pcase-dolist (`(,name ,line ,text) (contexture-remark--read answer))
        (when-let* ((place (if name (cdr (cl-assoc name places :test #'contexture-remark--named-p))
                             (cdar places)))
                    (buffer (if (bufferp place) place (contexture--visit-quietly place))))
          (when (and (buffer-live-p buffer) (contexture-remark--show buffer line text))
            (cl-incf shown))))
      (when (< 0 shown)
        (contexture--message "%s at %s; `C-c C-c' on one rewrites the code, `C-c C-k' dismisses it"
                             (contexture--count shown "remark")
                             (if (= shown 1) "its line" "their lines"))))))

(defun contexture-remark--read (answer)
  "Return the remarks in ANSWER, a list of (NAME LINE TEXT).
NAME is that of a file, or nil."
  (let ((start 0) found)
    (while (string-match contexture-remark--regexp answer start)
      (setq start (match-end 0))
      (push (list (match-string 1 answer)
                  (string-to-number (match-string 2 answer))
                  (replace-regexp-in-string "[ \t\n]+" " " (match-string 3 answer)))
            found))
    (nreverse found)))

(defun contexture-remark--named-p (name file)
  "Return non-nil if NAME, from outside, is that of FILE or ends its name."
  (or (equal name file)
      (string-suffix-p (concat "/" (string-remove-prefix "./" name)) file)))

(defun contexture-remark--show (buffer line text)
  "Show the remark TEXT below LINE of BUFFER; return its overlay, or nil.
Return nil if BUFFER has no such line."
  (with-current-buffer buffer
    (contexture--widened
      (goto-char (point-min))
      (when (and (< 0 line) (= 0 (forward-line (1- line))) (not (and (eobp) (bolp) (not (bobp)))))
        (let ((overlay (make-overlay (point) (min (point-max) (1+ (line-end-position))))))
          (overlay-put overlay 'contexture-remark text)
          (overlay-put overlay 'keymap contexture-remark-map)
          (overlay-put overlay 'help-echo (contexture--help text))
          (overlay-put overlay 'after-string
                       (propertize (concat (if (eq (char-before (overlay-end overlay)) ?\n) "" "\n")
                                           "  ▸ " (contexture--visible text) "\n")
                                   'face 'contexture-remark))
          (setq contexture-remark--all (append contexture-remark--all (list overlay)))
          overlay)))))

(defun contexture-remark--open ()
  "Return the remarks whose buffers live."
  (setq contexture-remark--all (cl-remove-if-not #'overlay-buffer contexture-remark--all)))

(defun contexture-remark--here ()
  "Return the remark about this line; signal an error if there is none."
  (or (cl-find-if (lambda (it) (memq it (contexture-remark--open)))
                  (overlays-in (line-beginning-position) (1+ (line-beginning-position))))
      (user-error "No remark is about this line")))

(defun contexture-remark-dismiss ()
  "Dismiss the remark about this line."
  (interactive)
  (let ((remark (contexture-remark--here)))
    (setq contexture-remark--all (delq remark contexture-remark--all))
    (delete-overlay remark)))

(defun contexture-remark-apply ()
  "Have a model rewrite the code that the remark about this line is about.
The change is proposed as that of `contexture-rewrite' is."
  (interactive)
  (let ((text (overlay-get (contexture-remark--here) 'contexture-remark)))
    (contexture-rewrite (concat "A review says of line "
                                (number-to-string (line-number-at-pos nil t)) ": " text))
    (contexture-remark-dismiss)))

(defun contexture-remark-next (&optional back)
  "Go to the next remark of a review, also in another buffer.
With BACK, go to the previous one."
  (interactive)
  (let ((place (or (contexture--next-place (contexture-remark--open)
                                           (line-beginning-position) back)
                   (user-error "No review has remarks"))))
    (pop-to-buffer (marker-buffer place))
    (goto-char place)))

(defun contexture-remark-previous ()
  "Go to the previous remark of a review, also in another buffer."
  (interactive)
  (contexture-remark-next t))

(provide 'contexture-point)
;;; contexture-point.el ends here
