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
;; text.  :place is (BUFFER . POSITION), (BUFFER BEG . END) or (FILE . LINE) of
;; the code that it is about, if there is one.  A subject with :git, arguments
;; of Git, in the folder :root has no :params until Git has written its text.
;; One with :file, a picture or PDF, has none.
;;
;; A remark of a review is shown below the line that it is about.  There you
;; have it applied, or dismiss it.

;;; Code:

(require 'contexture)
(require 'contexture-sources)

(declare-function Buffer-menu-buffer "buff-menu" (&optional error-if-non-existent-p))
(declare-function Buffer-menu-marked-buffers "buff-menu" (&optional unmark))
(declare-function archive-extract "arc-mode" (&optional other-window-p event))
(declare-function archive-get-descr "arc-mode" (&optional noerror))
(declare-function calendar-check-holidays "holidays" (date))
(declare-function calendar-cursor-to-date "calendar" (&optional error event))
(declare-function calendar-date-string "calendar" (date &optional abbreviate nodayname))
(declare-function compilation--ensure-parse "compile" (limit))
(declare-function contexture-mention--quote "contexture-mention" (name))
(declare-function dired-get-filename "dired" (&optional localp no-error-if-not-filep))
(declare-function ediff-get-diff-posn "ediff-util" (buf-type pos &optional n control-buf))
(declare-function ibuffer-current-buffer "ibuffer" (&optional must-be-live))
(declare-function ibuffer-get-marked-buffers "ibuffer" ())
(declare-function package-desc-archive "package" t t)
(declare-function package-desc-extras "package" t t)
(declare-function package-desc-full-name "package" t t)
(declare-function package-desc-p "package" t t)
(declare-function package-desc-reqs "package" t t)
(declare-function package-desc-status "package" (desc))
(declare-function package-desc-summary "package" t t)
(declare-function package-version-join "package" (vlist))
(declare-function tar-current-descriptor "tar-mode" (&optional noerror))
(declare-function tar-extract "tar-mode" (&optional other-window-p))
(declare-function vc-dir-marked-files "vc-dir" ())
(declare-function vc-dir-current-file "vc-dir" ())
(declare-function widget-get "wid-edit" t t)
(declare-function widget-type "wid-edit" (widget))
(declare-function wdired-get-filename "wdired" (&optional no-dir old))
(defvar custom-options)
(defvar diary-file)
(defvar ediff-buffer-A)
(defvar ediff-buffer-B)
(defvar ediff-current-difference)
(defvar ediff-number-of-differences)
(declare-function diary-list-entries "diary-lib" (date number &optional list-only))
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
(defvar tabulated-list-format)
(defvar Info-current-file)
(defvar Info-current-node)
(defvar log-view-vc-backend)
(defvar magit-buffer-range)
(defvar magit-buffer-revision)
(defvar Man-arguments)

(defconst contexture-point-kinds
  '(((diff-mode) contexture-point--diff
     "Diff mode, `vc-diff'"
     "the hunk; on a header, all hunks of the file"
     "the definition that the hunk changes")
    ((magit-section-mode) contexture-point--magit
     "Magit"
     "the hunk, file, commit, stash or branch, those in the region, or all below a heading"
     "the definition that the hunk changes, or the file")
    ((log-view-mode) contexture-point--log
     "`vc-print-log'" "the commit, or the marked ones, with message and changes" nil)
    ((vc-annotate-mode) contexture-point--annotated
     "`vc-annotate'" "the commit that the line is from" nil)
    ((contexture-point--rebase-p) contexture-point--rebased
     "the list of a rebase" "the commit that the line names" nil)
    ((smerge-mode) contexture-point--conflict
     "a merge or rebase in conflict" "the conflict, with both sides" "the conflict")
    ((ediff-mode) contexture-point--ediff
     "Ediff" "the current difference" "the definition around it in buffer B")
    ((occur-mode) contexture-point--occurrences
     "`occur'" "the definition around the place of the line" "that definition")
    ((xref--xref-buffer-mode) contexture-point--references
     "`xref'" "the definition around the place of the line" "that definition")
    ((compilation-mode) contexture-point--errors
     "`grep', `compile'" "the error, if it is one, and the definition around its place"
     "that definition")
    ((flymake-diagnostics-buffer-mode flymake-project-diagnostics-mode) contexture-point--flymake
     "Flymake's lists" "the error and the definition around its place" "that definition")
    ((flycheck-error-list-mode) contexture-point--flycheck
     "Flycheck's list" "the error and the definition around its place" "that definition")
    ((dired-mode wdired-mode vc-dir-mode) contexture-point--files
     "Dired, Wdired, `vc-dir'" "the file, or the marked ones" "the file")
    ((ibuffer-mode Buffer-menu-mode) contexture-point--buffers
     "Ibuffer, the list of buffers" "the buffer, or the marked ones" "the buffer")
    ((image-mode doc-view-mode pdf-view-mode) contexture-point--picture
     "pictures and PDFs" "the picture or PDF" nil)
    ((archive-mode tar-mode) contexture-point--member
     "archives" "the text of the member" nil)
    ((org-mode) contexture-point--table
     "Org" "the table, source block or subtree around point" "the same")
    ((Info-mode help-mode Man-mode woman-mode eww-mode apropos-mode helpful-mode shortdoc-mode
      profiler-report-mode debugger-mode messages-buffer-mode)
     contexture-point--page
     "Info, Help, Man, EWW, reports of the profiler" "the page" nil)
    ((Custom-mode) contexture-point--option
     "customization" "the option, face or group, as it is shown" nil)
    ((package-menu-mode) contexture-point--packages
     "the list of packages" "the package, or the marked ones, with what is said of it" nil)
    ((proced-mode tabulated-list-mode) contexture-point--rows
     "Proced and other lists" "the line, or the marked ones, below the headings" nil)
    ((calendar-mode) contexture-point--day
     "the calendar" "the day, with its holidays and what the diary has" nil)
    ((comint-mode eshell-mode term-mode vterm-mode) contexture-point--command
     "shells, terminals and REPLs" "the last command with its output" nil))
  "What is meant at point, by the kind of the buffer.
Each entry is (MODES FINDER BUFFERS MEANT FIXED).  MODES are modes, major or
minor, or predicates.  FINDER returns the subjects at point, or nil.  BUFFERS,
MEANT and FIXED are words for the manual: what is shown, what is meant, and the
code that `contexture-fix-error' fixes, or nil if there is none.")

(defun contexture-point-subjects ()
  "Return the subjects at point, or nil where the text itself is meant.
See `contexture-point-kinds'."
  (cl-loop for (modes finder) in contexture-point-kinds
           when (cl-some #'contexture-point--mode-p modes)
           thereis (funcall finder)))

(defun contexture-point--mode-p (mode)
  "Return non-nil if MODE, major or minor, is on, or is a predicate that holds."
  (cond ((derived-mode-p mode))
        ((boundp mode) (symbol-value mode))
        ((string-prefix-p "contexture-" (symbol-name mode)) (funcall mode))))

(defun contexture-point-call (function)
  "Call FUNCTION in the buffer that is meant.
From the minibuffer, that is the buffer that it was entered from."
  (if (and (minibufferp) (minibuffer-selected-window))
      (with-minibuffer-selected-window (funcall function))
    (funcall function)))

(defun contexture-point-with (subjects function)
  "Call FUNCTION with SUBJECTS once each has its text.
It is called at once if all have.  Otherwise Git runs in the background."
  (let ((left (cl-remove-if-not (lambda (it) (plist-get it :git)) subjects)))
    (if (null left)
        (funcall function subjects)
      (let ((subject (car left))
            (origin (current-buffer)))
        (contexture-sources--git
         (plist-get subject :root) (plist-get subject :git)
         (lambda (status text)
           (contexture--with-live-buffer origin
             (if (and (eql status 0) (not (string-blank-p text)))
                 (contexture-point-with
                  (cl-substitute (contexture-point--commit-read subject text) subject subjects)
                  function)
               (contexture--message "Git tells nothing about %s%s" (plist-get subject :revision)
                                    (if (string-blank-p text) ""
                                      (concat ": " (car (last (split-string text "\n" t))))))))))))))

(defun contexture-point-code (subject)
  "Return (BUFFER BEG END) for the code that SUBJECT is about, or nil.
That is its place, the definition around it, or else the lines around it."
  (pcase (plist-get subject :place)
    (`(,(and (pred buffer-live-p) buffer) ,beg . ,end) (list buffer beg end))
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
                (save-excursion (goto-char beg) (ignore-errors (diff-hunk-file-names)))
                (- here beg))))))))

(defun contexture-point--bounds-around (position function)
  "Return the bounds that FUNCTION finds, a list, if POSITION is between them."
  (save-excursion
    (pcase (ignore-errors (funcall function))
      ((and `(,beg ,end) (guard (and (<= beg position) (< position end))))
       (list beg end)))))

(defun contexture-point--part (text names offset)
  "Return the subject of TEXT, a part of differences of the file with NAMES.
The first of NAMES that is a file counts, with or without its first folder.
Its place is that of the line at OFFSET in TEXT, or of the first change after it
if that is a heading."
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
           (and file (cons file (or (contexture-point--changed-line text offset) 1)))
           (append (contexture--plist :filename (or file (car names)))
                   (and lines one
                        (list :start-line (car lines) :end-line (cadr lines)))))))

(defun contexture-point--changed-line (text offset)
  "Return the line of the new file that the line at OFFSET in TEXT is about.
TEXT has hunks.  For a heading, that is the line of the first change after it."
  (with-temp-buffer
    (insert text)
    (goto-char (+ offset (point-min)))
    (forward-line 0)
    (let ((at (point))
          (heading "^@@ -[0-9,]+ \\+\\([0-9]+\\).*\n"))
      (when (or (and (looking-at-p "[ +-]") (re-search-backward heading nil t)
                     (looking-at heading))
                (prog1 (re-search-forward heading nil t) (setq at nil)))
        (let ((line (string-to-number (match-string 1))))
          (goto-char (match-end 0))
          (while (if at (< (point) at) (eq (char-after) ?\s))
            (unless (eq (char-after) ?-) (cl-incf line))
            (forward-line))
          (max 1 line))))))

(defun contexture-point--file (name)
  "Return the file called NAME, from outside, in this project, or nil."
  (cl-loop for folder in (list default-directory (contexture--project-root))
           for file = (and folder (contexture--outside-file name folder folder))
           when (and file (file-exists-p file)) return file))

(defun contexture-point--ediff ()
  "Return the difference that Ediff, of which this is the control buffer, is at."
  (when (and (<= 0 ediff-current-difference)
             (< ediff-current-difference ediff-number-of-differences))
    (pcase-let* ((control (current-buffer))
                 (`(,old ,new)
                  (cl-loop for type in '(A B)
                           for buffer in (list ediff-buffer-A ediff-buffer-B)
                           collect (contexture-point--side
                                    buffer
                                    (ediff-get-diff-posn type 'beg nil control)
                                    (ediff-get-diff-posn type 'end nil control)
                                    (if (eq type 'A) "-" "+")))))
      (list (apply #'contexture-point--text
                   (format "@@ -%d,%d +%d,%d @@\n%s%s" (plist-get old :line) (plist-get old :count)
                           (plist-get new :line) (plist-get new :count)
                           (plist-get old :text) (plist-get new :text))
                   (format "%s and %s" (buffer-name ediff-buffer-A) (buffer-name ediff-buffer-B))
                   (cons ediff-buffer-B (plist-get new :beg))
                   (contexture--plist :filename (buffer-file-name ediff-buffer-B)))))))

(defun contexture-point--side (buffer beg end sign)
  "Return what is from BEG to END in BUFFER, as lines with SIGN, with its place."
  (with-current-buffer buffer
    (let ((lines (split-string (string-remove-suffix
                                "\n" (buffer-substring-no-properties beg end))
                               "\n")))
      (list :beg beg :line (line-number-at-pos beg t)
            :count (if (= beg end) 0 (length lines))
            :text (if (= beg end) ""
                    (mapconcat (lambda (line) (concat sign line "\n")) lines ""))))))

(defun contexture-point--conflict ()
  "Return the conflict around point, with both sides, in `smerge-mode'."
  (unless (use-region-p)
    (save-excursion
      (save-match-data
        (pcase (and (ignore-errors (smerge-match-conflict) t) (match-data t))
          (`(,beg ,end . ,_)
           (list (list :params (contexture--capture beg end :region)
                       :place (cons (current-buffer) (cons beg end))))))))))

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
  "Return SUBJECT with TEXT, which Git wrote about its revision."
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

(defun contexture-point--rebase-p ()
  "Return non-nil if this buffer has the list of commits of a rebase."
  (and buffer-file-name (string-suffix-p "/git-rebase-todo" buffer-file-name)))

(defun contexture-point--rebased ()
  "Return the commits that the list of a rebase names at point or in the region."
  (contexture-point--each-line
   (lambda ()
     (when (looking-at "#? *[a-z]+ \\(?:-[cC] \\)?\\([[:xdigit:]]\\{4,40\\}\\)\\_>")
       (let ((it (contexture-point--commit (match-string-no-properties 1))))
         (and it (list (plist-put it :params (plist-get it :revision)))))))))

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

(defconst contexture-point--headings
  '(unstaged staged untracked stashes unpushed unpulled recent)
  "Types of Magit's sections that stand for all that is below them.")

(defun contexture-point--section (section)
  "Return the subjects of SECTION, a section of Magit, or nil."
  (let ((value (contexture-point--slot section 'value)))
    (pcase (contexture-point--slot section 'type)
      ('hunk (list (contexture-point--part
                    (contexture-point--section-text section)
                    (list (contexture-point--slot (contexture-point--slot section 'parent) 'value))
                    (contexture-point--offset section))))
      ((and 'file (guard (stringp value)))
       (when (contexture-point--slot section 'washer) (magit-section-show section))
       (if (contexture-point--slot section 'children)
           (list (contexture-point--part (contexture-point--section-text section) (list value)
                                         (contexture-point--offset section)))
         (when-let* ((file (contexture-point--file value)))
           (list (contexture-point--whole-file file)))))
      ((and type (guard (memq type contexture-point--headings)))
       (cl-mapcan #'contexture-point--section
                  (copy-sequence (contexture-point--slot section 'children))))
      ((or 'commit 'module-commit 'stash 'branch 'tag)
       (when-let* ((commit (contexture-point--commit value))) (list commit))))))

(defun contexture-point--offset (section)
  "Return the place of point in the text of SECTION, or 0 if it is not there."
  (let ((start (contexture-point--slot section 'start)))
    (if (<= start (point) (1- (contexture-point--slot section 'end))) (- (point) start) 0)))

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
  "Return the marked files of this list of files, or the one at point."
  (cl-loop for file in (ignore-errors
                         (pcase major-mode
                           ('wdired-mode (list (wdired-get-filename nil t)))
                           ('vc-dir-mode (or (vc-dir-marked-files) (list (vc-dir-current-file))))
                           (_ (dired-get-marked-files))))
           when (and file (file-regular-p file))
           collect (if (contexture-sources--picture-p file) (list :file file)
                     (contexture-point--whole-file file))))

(defun contexture-point--picture ()
  "Return the picture or PDF that this buffer shows."
  (and buffer-file-name (contexture-sources--picture-p buffer-file-name)
       (list (list :file buffer-file-name))))

(defun contexture-point--buffers ()
  "Return the marked buffers of this list of buffers, or the one at point."
  (cl-loop for buffer in (if (derived-mode-p 'ibuffer-mode)
                             (or (ibuffer-get-marked-buffers)
                                 (ensure-list (ignore-errors (ibuffer-current-buffer t))))
                           (or (save-excursion (Buffer-menu-marked-buffers))
                               (ensure-list (Buffer-menu-buffer))))
           collect (with-current-buffer buffer
                     (when (= (point-min) (point-max))
                       (contexture--user-error "Buffer %s is empty" (buffer-name)))
                     (list :params (contexture--capture (point-min) (point-max) :buffer)
                           :place (cons buffer (cons (point-min) (point-max)))))))

(defun contexture-point--whole-file (file)
  "Return the subject of the whole FILE."
  (let ((buffer (or (contexture--visit-quietly file)
                    (contexture--user-error "%s is no text" (contexture--abbreviate file)))))
    (list :params (contexture--capture-file buffer nil nil)
          :place (contexture-point--all-of buffer))))

(defun contexture-point--all-of (buffer)
  "Return the place of all text of BUFFER."
  (with-current-buffer buffer
    (cons buffer (contexture--widened (cons (point-min) (point-max))))))

;;;; Pages, tables and terminals

(defun contexture-point--table ()
  "Return the table around point in Org, or nil."
  (when (and (not (use-region-p))
             (org-element-lineage (org-element-at-point) '(table) t))
    (let ((beg (org-table-begin)) (end (org-table-end)))
      (list (list :params (contexture--capture beg end :region)
                  :place (cons (current-buffer) (cons beg end)))))))

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
        (t (contexture--trim (buffer-name) "*"))))

(defun contexture-point--plain (text name)
  "Return the subject of TEXT, which is called NAME and comes from no file."
  (list :params (contexture-sources--params
                 :text :buffer text
                 (append (list :buffer name)
                         (contexture-sources--buffer-metadata :project :mode)))))

(defun contexture-point--member ()
  "Return the text of the member of this archive at point."
  (let ((name (if (derived-mode-p 'tar-mode)
                  (and (tar-current-descriptor t) (substring-no-properties (thing-at-point 'line)))
                (and (archive-get-descr t) (substring-no-properties (thing-at-point 'line)))))
        (before (buffer-list))
        (archive (buffer-name)))
    (when name
      (let ((buffer (save-window-excursion
                      (save-current-buffer
                        ;; The archive chooses no mode, and no variables.
                        (let ((auto-mode-alist nil) (magic-mode-alist nil)
                              (magic-fallback-mode-alist nil) (interpreter-mode-alist nil)
                              (enable-local-variables nil) (enable-local-eval nil)
                              (find-file-hook nil) (inhibit-interaction t))
                          (if (derived-mode-p 'tar-mode) (tar-extract) (archive-extract)))
                        (current-buffer)))))
        (unwind-protect
            (with-current-buffer buffer
              (list (contexture-point--plain
                     (contexture--check-text (buffer-substring-no-properties (point-min) (point-max)))
                     (format "%s in %s" (car (last (split-string (contexture--trim name)))) archive))))
          (unless (memq buffer before) (kill-buffer buffer)))))))

(defun contexture-point--option ()
  "Return the option, face or group at point in customization, as it is shown."
  (when-let* ((widget (contexture-point--widget custom-options)))
    (list (contexture-point--plain
           (buffer-substring-no-properties (widget-get widget :from) (widget-get widget :to))
           (format "the customization of %s" (widget-get widget :value))))))

(defun contexture-point--widget (widgets)
  "Return the innermost of WIDGETS, of options and groups, around point, or nil."
  (when-let* ((widget (cl-find-if (lambda (it)
                                    (let ((from (widget-get it :from)) (to (widget-get it :to)))
                                      (and from to (<= from (point)) (< (point) to))))
                                  widgets)))
    (or (contexture-point--widget
         (cl-remove-if-not (lambda (it)
                             (memq (widget-type it) '(custom-variable custom-face custom-group)))
                           (widget-get widget :children)))
        widget)))

(defun contexture-point--chosen-rows (marks)
  "Return the positions of the lines that begin with one of MARKS, characters.
If there is none, return that of this line, or of those in the region."
  (let (found)
    (save-excursion
      (goto-char (point-min))
      (while (not (eobp))
        (when (memq (char-after) marks) (push (point) found))
        (forward-line)))
    (or (nreverse found)
        (if (not (use-region-p)) (list (line-beginning-position))
          (save-excursion
            (let ((end (region-end)) found)
              (goto-char (region-beginning))
              (forward-line 0)
              (while (and (< (point) end) (not (eobp)))
                (push (point) found)
                (forward-line))
              (nreverse found)))))))

(defun contexture-point--packages ()
  "Return what is said of the marked packages of this list, or of the one at point."
  (cl-loop for position in (contexture-point--chosen-rows '(?I ?D))
           for package = (tabulated-list-get-id position)
           when (package-desc-p package)
           collect (contexture-point--plain
                    (concat
                     (format "%s (%s): %s\n" (package-desc-full-name package)
                             (package-desc-status package) (package-desc-summary package))
                     (when-let* ((needs (package-desc-reqs package)))
                       (format "Needs: %s\n"
                               (mapconcat (lambda (it)
                                            (format "%s %s" (car it)
                                                    (package-version-join (cadr it))))
                                          needs ", ")))
                     (when-let* ((page (alist-get :url (package-desc-extras package))))
                       (format "Home page: %s\n" page)))
                    (format "the package %s" (package-desc-full-name package)))))

(defun contexture-point--rows ()
  "Return the marked lines of this list, or the one at point, below the headings."
  (let ((lines (cl-loop for position in (contexture-point--chosen-rows '(?* ?>))
                        for line = (save-excursion
                                     (goto-char position)
                                     (buffer-substring-no-properties position (line-end-position)))
                        unless (string-blank-p line) collect line))
        (heading (and (derived-mode-p 'tabulated-list-mode)
                      (mapconcat #'car (append tabulated-list-format nil) "  "))))
    (when (and lines (not (string-prefix-p "*contexture: " (buffer-name))))
      (list (contexture-point--plain
             (concat (or heading (substring-no-properties (bound-and-true-p proced-header-line)))
                     "\n" (mapconcat #'identity lines "\n") "\n")
             (buffer-name))))))

(defun contexture-point--day ()
  "Return the day at point in the calendar, with its holidays and diary."
  (when-let* ((date (calendar-cursor-to-date)))
    (list (contexture-point--plain
           (mapconcat (lambda (it) (concat it "\n"))
                      (append (list (calendar-date-string date))
                              (calendar-check-holidays date)
                              (contexture-point--diary date))
                      "")
           (calendar-date-string date)))))

(defun contexture-point--diary (date)
  "Return the entries of the user's diary for DATE, as texts."
  (when (and (bound-and-true-p diary-file) (file-readable-p diary-file))
    (require 'diary-lib)
    (mapcar #'cadr (diary-list-entries date 1 t))))

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
    (let ((shown 0) (left 0))
      (pcase-dolist (`(,name ,line ,text) (contexture-remark--read answer))
        (let* ((place (if name (cdr (cl-assoc name places :test #'contexture-remark--named-p))
                        (cdar places)))
               (buffer (if (stringp place) (contexture--visit-quietly place) place)))
          (if (and (buffer-live-p buffer) (contexture-remark--show buffer line text))
              (cl-incf shown)
            (cl-incf left))))
      (when (< 0 shown)
        (setq-local next-error-function #'contexture-remark--step)
        (setq next-error-last-buffer (current-buffer)))
      (when (< 0 (+ shown left))
        (contexture--message
         "%s"
         (concat
          (when (< 0 shown)
            (format "%s at %s, %s goes there; `C-c C-c' rewrites the code, `C-c C-k' dismisses it"
                    (contexture--count shown "remark")
                    (if (= shown 1) "its line" "their lines")
                    (contexture--key 'next-error)))
          (when (and (< 0 shown) (< 0 left)) "; ")
          (when (< 0 left)
            (format "%s about other files or lines only in the answer"
                    (contexture--count left "remark")))))))))

(defconst contexture-remark--most 200
  "Maximum number of remarks of one answer that are shown at their lines.")

(defconst contexture-remark--longest 10000
  "Maximum length of a line of an answer with remarks, in characters.")

(defun contexture-remark--read (answer)
  "Return the remarks in ANSWER, a list of (NAME LINE TEXT).
NAME is that of a file, or nil.  Return no more than the first
`contexture-remark--most', and none after a line that is longer than
`contexture-remark--longest'."
  (let ((start 0) (count 0) found)
    (when (string-match (format "^.\\{%d\\}" contexture-remark--longest) answer)
      (setq answer (substring answer 0 (match-beginning 0))))
    (while (and (<= (cl-incf count) contexture-remark--most)
                (string-match contexture-remark--regexp answer start))
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

(defvar contexture-remark--visited nil
  "The remark that `next-error' went to last.")

(defun contexture-remark--step (count reset)
  "Go COUNT remarks further, or if RESET is non-nil, from before the first.
This is for `next-error', which works from any buffer."
  (let* ((all (contexture-remark--open))
         (at (or (and (not reset) (cl-position contexture-remark--visited all)) -1))
         (to (+ at (or count 1)))
         (remark (or (and (<= 0 to) (nth to all))
                     (user-error "No review has more remarks"))))
    (setq contexture-remark--visited remark)
    (pop-to-buffer (overlay-buffer remark))
    (goto-char (overlay-start remark))))

(defun contexture-remark-dismiss ()
  "Dismiss the remark about this line."
  (interactive)
  (let ((remark (contexture-remark--here)))
    (setq contexture-remark--all (delq remark contexture-remark--all))
    (delete-overlay remark)))

(defun contexture-remark-apply ()
  "Have a model rewrite the code that the remark about this line is about.
That is the definition around it, or else the lines around it.  The change is
proposed as that of `contexture-rewrite' is."
  (interactive)
  (let ((text (overlay-get (contexture-remark--here) 'contexture-remark))
        (line (line-number-at-pos nil t)))
    (pcase-let ((`(,_ ,beg ,end)
                 (contexture-point-code (list :place (cons (current-buffer) (point)))))
                (transient-mark-mode t))
      (save-mark-and-excursion
        (goto-char beg)
        (push-mark end t t)
        (contexture-rewrite (format "A review says of line %d: %s" line text))))
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
