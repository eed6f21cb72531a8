;;; contexture-sources.el --- Add what Emacs has at hand  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Commands that add text from elsewhere than the lines around point: the
;; latest kill, diagnostics, differences, errors of a compilation, marked
;; files and buffers, whole directories and projects, and the definition of
;; a symbol.  `contexture-add-dwim' adds what you most likely mean.

;;; Code:

(require 'contexture)
(eval-when-compile
  (require 'subr-x)
  ;; Some accessors of compile.el are macros; interpreted code needs them only
  ;; when it runs.
  (when (bound-and-true-p byte-compile-current-file)
    (require 'compile)))

(declare-function apply-on-rectangle "rect" (function start end &rest args))
(declare-function compilation--ensure-parse "compile" (limit))
(declare-function compilation-buffer-p "compile" (buffer))
(declare-function contexture-defun--defines-p "contexture-code" (line name))
(declare-function contexture-defun--heads "contexture-code" ())
(declare-function contexture-defun--named "contexture-code" (name))
(declare-function contexture-defun--skip-preamble "contexture-code" ())
(declare-function contexture-mention--symbols "contexture-mention" ())
(declare-function dired-get-filename "dired" (&optional localp no-error-if-not-filep))
(declare-function dired-get-marked-files "dired"
                  (&optional localp arg filter distinguish-one-marked error))
(declare-function extract-rectangle-line "rect" (startcol endcol lines))
(declare-function flymake-diagnostic-beg "flymake" t t)
(declare-function flymake-diagnostic-text "flymake" t t)
(declare-function flymake-diagnostic-type "flymake" t t)
(declare-function flymake-diagnostics "flymake" (&optional beg end))
(declare-function contexture-files--list-names "contexture-mention" t t)
(declare-function contexture-files--wait "contexture-mention" (list))
(declare-function contexture-files--of "contexture-mention" (root shallow))
(declare-function vc-backend "vc-hooks" (file-or-list))
(declare-function vc-buffer-sync "vc-dispatcher" (&optional not-essential))
(declare-function vc-call-backend "vc-hooks" (backend function-name &rest args))
(declare-function vc-coding-system-for-diff "vc" (file))
(declare-function vc-responsible-backend "vc" (file &optional no-error))
(declare-function jsonrpc-notify "jsonrpc" (connection method params))
(declare-function jsonrpc-running-p "jsonrpc" (conn))
(declare-function imenu--make-index-alist "imenu" (&optional noerror))
(declare-function imenu--subalist-p "imenu" (item))
(declare-function find-definition-noselect "find-func" (symbol type &optional file))
(declare-function xref-backend-definitions "xref" (backend identifier))
(declare-function xref-backend-identifier-at-point "xref" (backend))
(declare-function xref-buffer-location-p "xref" t t)
(declare-function xref-elisp-location-p "elisp-mode" t t)
(declare-function xref-backend-identifier-completion-table "xref" (backend))
(declare-function xref-find-backend "xref" ())
(declare-function xref-item-location "xref" (item) t)
(declare-function xref-item-summary "xref" (item) t)
(declare-function xref-location-group "xref" (location))
(declare-function xref-location-line "xref" (location))
(declare-function xref-location-marker "xref" (location))
(declare-function xref-make "xref" t t)
(declare-function xref-make-file-location "xref" t t)
(defvar compilation-skip-threshold)
(defvar dired-re-dir)
(defvar contexture-defun-prose--files)
(defvar flymake-mode)
(defvar vc-git-program)
(defvar find-function-C-source-directory)
(defvar imenu-auto-rescan)
(defvar tags-file-name)
(defvar tags-table-list)

;;; Add what Emacs has at hand

;; An item with a kill, diagnostics, differences or errors of a compilation may
;; name the file that it is about.  The server does not compare its text with
;; that file.

(defun contexture-sources--params (type origin content metadata)
  "Return parameters of `add-item' for CONTENT, a string, of TYPE.
ORIGIN, a keyword, says where CONTENT was taken; METADATA is a plist of
further facts."
  (list :type type
        :content (contexture--plain-text (substring-no-properties content))
        :metadata (append (list :origin origin) metadata (contexture--as-of))))

(defun contexture-sources--buffer-metadata (&rest keys)
  "Return those of this buffer's metadata that are under KEYS, as a plist."
  (contexture--select (contexture--buffer-metadata) keys))

;;;; Rectangles

(defun contexture-sources--block-selection ()
  "Return (BEG END t) if a rectangle or a block of Evil is selected, else nil."
  (cond ((and (bound-and-true-p rectangle-mark-mode) (use-region-p))
         (list (region-beginning) (region-end) t))
        ((and (eq (bound-and-true-p evil-state) 'visual)
              (fboundp 'evil-visual-type) (fboundp 'evil-visual-range)
              (eq (funcall 'evil-visual-type) 'block))
         (pcase-let ((`(,beg ,end . ,_) (funcall 'evil-visual-range)))
           (list beg end t)))))

(defun contexture-sources--capture-rectangle (beg end)
  "Return parameters of `add-item' for the rectangle between BEG and END.
These are its corners.  The metadata has the first and last line and column
of the rectangle, counted from 1.  Blanks at the ends of lines are left
out.  Signal an error if the rectangle is blank."
  (require 'rect)
  (let ((rows (list nil)) columns)
    (save-excursion
      (apply-on-rectangle (lambda (from to)
                            (setq columns (cons from to))
                            (extract-rectangle-line from to rows))
                          beg end))
    (let ((text (mapconcat (lambda (row) (contexture--trim-right row " \t"))
                           (reverse (cdr rows)) "\n"))
          (params (contexture--capture beg end :region
                                       :start-column (1+ (car columns))
                                       :end-column (cdr columns))))
      (when (string-blank-p text)
        (user-error "The rectangle is empty"))
      (let ((metadata (plist-get params :metadata)))
        ;; Here a line counts even if the rectangle ends at its beginning.
        (setq metadata (plist-put metadata :end-line
                                  (line-number-at-pos (max beg end) t)))
        (plist-put (plist-put params :content
                              (concat (substring-no-properties text) "\n"))
                   :metadata (plist-put metadata :partial t))))))

;;;; What the user most likely means

;;;###autoload
(defun contexture-add-dwim ()
  "Add what you most likely mean to this buffer's context.
Among differences, that is the hunk, file or commit at point; in lists of files
or buffers, the marked ones; in lists of errors or matches, the code at the
place that point names, or at the places in the region; in a terminal, the last
command with its output.  `contexture-point-kinds' has all kinds of buffers.
Elsewhere, it is the region if it is active, else the definition around point,
else the whole buffer."
  (interactive)
  (contexture-point-call
   (lambda ()
     (let ((subjects (and (not (derived-mode-p 'dired-mode))
                          (contexture-point-subjects))))
       (cond (subjects (contexture-point-with subjects #'contexture-sources--add-subjects))
             ((or (use-region-p) (contexture-sources--block-selection))
              (call-interactively #'contexture-add-region))
             ((derived-mode-p 'dired-mode) (contexture-sources--add-dired))
             ((contexture-defun-at-point) (contexture-add-defun))
             (t (contexture-add-buffer)))))))

(defun contexture-sources--add-subjects (subjects)
  "Add SUBJECTS, which `contexture-point-subjects' found, to this buffer's context."
  (contexture-sources--add-all
   (mapcar (lambda (subject)
             (if-let* ((file (plist-get subject :file))) (contexture--file-call file)
               (cons 'add-item (plist-get subject :params))))
           subjects)
   (if (derived-mode-p 'ibuffer-mode 'Buffer-menu-mode) "buffer" "text"))
  (setq deactivate-mark t))

(defun contexture-sources--add-dired ()
  "Add the marked files of this Dired buffer, or the one at point.
They are filtered like the files of a directory, but a hidden or ignored
file that is marked itself is added.  If there are directories, ask once
how to add them.  All are one addition for undo."
  (let* ((files (contexture-sources--dired-files))
         (remote (cl-find-if #'contexture--remote-p files))
         (folders (cl-some #'file-directory-p (if remote nil files))))
    (cond ((and remote (null (cdr files))
                (save-excursion (forward-line 0) (looking-at-p dired-re-dir)))
           (contexture-add-directory (car files) (contexture-tree--read-mode)))
          (remote
           (contexture-tree--add-remote
            (contexture--connected-folder default-directory) 'files t
            (mapcar (lambda (file)
                      (contexture--inertly (file-relative-name file default-directory)))
                    files)))
          ((and (cdr files) (not folders) (cl-some #'contexture-sources--picture-p files))
           (contexture-sources--add-all (mapcar #'contexture--file-call files) "file"))
          ((or folders (cdr files))
           (contexture-tree--add-files
            files (if folders (contexture-tree--read-mode) 'files)))
          (t (contexture-add-file (car files))))))

(defun contexture-sources--picture-p (file)
  "Return non-nil if FILE has the name of a picture or PDF, which models see."
  (let ((case-fold-search t))
    (string-match-p "\\.\\(?:png\\|jpe?g\\|gif\\|webp\\|pdf\\)\\'" file)))

(defun contexture-sources--dired-files ()
  "Return the marked files of this Dired buffer, or the one at point.
On the line of the directory itself, that is the directory."
  (or (ignore-errors (dired-get-marked-files))
      (let ((file (dired-get-filename nil t)))
        (and file (string-match-p "/\\.\\'" file)
             (list (substring file 0 -2))))
      (user-error "Mark files, or put point on one")))

(defun contexture-sources--add-all (calls noun)
  "Make CALLS, pairs (METHOD . PARAMS), and show one message about all.
NOUN, such as \"file\", names what each of them adds.  Ask once about those
that look like secrets."
  (if (null (cdr calls))
      (when calls
        (contexture--add (cdar calls) (caar calls)))
    (let* ((made (contexture--asked-calls calls))
           (left (cl-loop for call in calls
                          for file = (contexture--call-file call)
                          unless (cl-find file made :key #'contexture--call-file :test #'equal)
                          collect (concat (contexture--last-name file) " may hold secrets"))))
      (if (null made)
          (contexture--message "Nothing added: %s" (contexture--some-of left))
        (contexture--add-batch
         made
         (lambda (manager outcomes)
           (contexture-sources--tell-all
            manager noun
            (reverse (delq nil (contexture--pluck :result outcomes)))
            (append left
                    (delq nil (mapcar (lambda (outcome)
                                        (contexture--refusal-text
                                         (plist-get outcome :error)))
                                      outcomes))))))))))

(defun contexture--refusal-text (problem)
  "Return the message for PROBLEM, the error of a call, or nil if it is nil."
  (and problem (contexture--error-text problem)))

(defun contexture--add-batch (calls function &optional step before)
  "Make CALLS, pairs (METHOD . PARAMS), which add to this buffer's context.
They are one addition for undo.  Then call FUNCTION with the name of the
context and the outcomes.  What the server refuses is asked about, or
decoded, and added with the rest.  STEP is the step of an addition that
these calls belong to.  BEFORE is a list of outcomes to put first."
  (contexture--with-adding-context
   (lambda (manager)
     (contexture-request-batch-async
      (cl-loop for (method . params) in calls
               collect `(,method :manager ,manager ,@params :brief t))
      :step step
      :success
      (lambda (outcomes)
        (cl-loop for (_ . params) in calls
                 for outcome in outcomes
                 for item = (plist-get outcome :result)
                 when item
                 do (contexture-live--added manager item (plist-get params :content)))
        (let ((refused (cl-loop for call in calls
                                for outcome in outcomes
                                for problem = (plist-get outcome :error)
                                when (and problem (contexture--may-be-otherwise-p problem))
                                collect (cons call problem))))
          (if (null refused)
              (funcall function manager (append before outcomes))
            (contexture--later
             #'contexture--add-refused manager refused function
             (or step (cl-some (lambda (outcome)
                                 (plist-get (plist-get outcome :result) :version))
                               outcomes))
             (append before
                     (cl-remove-if
                      (lambda (outcome)
                        (contexture--may-be-otherwise-p (plist-get outcome :error)))
                      outcomes))))))))))

(defun contexture--may-be-otherwise-p (problem)
  "Return non-nil if another call may add what was refused because of PROBLEM."
  (memq (plist-get (plist-get problem :data) :kind) '(:looks-secret :file-binary)))

(defun contexture--add-refused (manager refused function step outcomes)
  "Add to MANAGER what was REFUSED, pairs of a call and its problem, if possible.
Ask once about all secrets.  Then call FUNCTION with MANAGER and OUTCOMES,
to which these additions are appended as a part of STEP."
  (let* ((secrets (cl-remove :looks-secret refused :test-not #'eq
                             :key (lambda (pair)
                                    (plist-get (plist-get (cdr pair) :data) :kind))))
         (names (mapcar (lambda (pair) (contexture--last-name
                                        (or (contexture--call-file (car pair)) "this text")))
                        secrets))
         (confirmed (and secrets (contexture--confirm-secrets names)))
         (contexture-context manager)
         calls problems)
    (pcase-dolist (`(,call . ,problem) refused)
      (condition-case refusal
          (if (not (assq call secrets))
              (push (contexture--otherwise call problem) calls)
            (unless confirmed (user-error "%s may hold secrets" (pop names)))
            (push (contexture--with-secrets call) calls))
        (user-error (push (list :error (list :message (cadr refusal))) problems))))
    (setq outcomes (append outcomes (nreverse problems)))
    (if (setq calls (delq nil (nreverse calls)))
        (contexture--add-batch calls function step outcomes)
      (funcall function manager outcomes))))

(defun contexture-sources--tell-all (manager noun items refusals)
  "Show a message that ITEMS, each a NOUN, were added to the context MANAGER.
ITEMS are in order, the newest first.  REFUSALS are the error messages of
the calls that added none."
  (let ((evicted (cl-loop for item in items
                          sum (length (plist-get item :evicted))))
        (refused (when refusals
                   (format "; %d not added: %s" (length refusals)
                           (contexture--some-of refusals)))))
    (if (null items)
        (contexture--message "Nothing added to %s%s" (contexture--label manager) refused)
      (contexture--with-size
       manager (contexture-sources--last-of items)
       (lambda (size)
         (contexture--message "Added %s to %s (%s)%s%s"
                  (contexture--count (length items) noun)
                  (contexture--label manager)
                  size
                  (contexture--evicted-text evicted) refused))))))

(defun contexture-sources--last-of (items)
  "Return the first of ITEMS, the newest, with a `:covers' for all of them.
It has the ids of all items that any of ITEMS covers, or that cover it."
  (append (list :covers (cl-mapcan (lambda (item)
                                     (append (plist-get item :covers)
                                             (ensure-list (plist-get item :covered-by))))
                                   items))
          (car items)))

;;;; Kills

;;;###autoload
(defun contexture-add-kill (text)
  "Add TEXT, the latest kill, to this buffer's context.
With a prefix argument, choose TEXT from the kill ring."
  (interactive
   (let ((latest (condition-case nil
                     (current-kill 0 t)
                   (error (user-error "Kill ring is empty")))))
     (list (if (contexture--own-prefix) (read-from-kill-ring "Add kill: ") latest))))
  (when (string-empty-p text)
    (user-error "The kill is empty"))
  (contexture--add (contexture-sources--params :text :kill text nil)))

;;;; Diagnostics

;;;###autoload
(defun contexture-add-diagnostics (&optional all)
  "Add Flymake's diagnostics at point to this buffer's context.
If there are none at point, add those of its line.  With a prefix argument,
ALL, add all of the buffer's diagnostics as one item."
  (interactive (list (contexture--own-prefix)))
  (unless (bound-and-true-p flymake-mode)
    (user-error "Flymake is not on in this buffer; M-x flymake-mode turns it on"))
  (let ((diagnostics
         (sort (or (contexture-sources--diagnostics all)
                   (user-error (if all "Flymake has no diagnostics in this buffer"
                                 "Flymake has no diagnostics on this line")))
               (lambda (a b) (< (flymake-diagnostic-beg a)
                                (flymake-diagnostic-beg b))))))
    (contexture--add
     (contexture-sources--params
      :error :diagnostic
      (mapconcat #'contexture-sources--diagnostic-text diagnostics "")
      (append (contexture-sources--diagnostic-lines (and (not all) diagnostics))
              (contexture-sources--buffer-metadata
               :filename :project :buffer :mode :modified)
              '(:language "text"))))))

(defun contexture-sources--diagnostics (all)
  "Return Flymake's diagnostics at point or else on its line, or all if ALL."
  (cond (all (flymake-diagnostics))
        ((flymake-diagnostics (point)))
        (t (flymake-diagnostics (line-beginning-position) (line-end-position)))))

(defun contexture-sources--diagnostic-lines (diagnostics)
  "Return the first and last line of DIAGNOSTICS, which are sorted, as a plist."
  (when diagnostics
    (list :start-line (contexture-sources--diagnostic-line (car diagnostics))
          :end-line (contexture-sources--diagnostic-line
                     (car (last diagnostics))))))

(defun contexture-sources--diagnostic-line (diagnostic)
  "Return the line of DIAGNOSTIC, counted in the whole buffer."
  (line-number-at-pos (flymake-diagnostic-beg diagnostic) t))

(defun contexture-sources--diagnostic-text (diagnostic)
  "Return line, severity and message of DIAGNOSTIC, and the source line."
  (format "line %d: %s: %s\n    %s\n"
          (contexture-sources--diagnostic-line diagnostic)
          (contexture-sources--severity (flymake-diagnostic-type diagnostic))
          (flymake-diagnostic-text diagnostic)
          (save-excursion
            (goto-char (flymake-diagnostic-beg diagnostic))
            (contexture--trim (buffer-substring-no-properties
                               (line-beginning-position) (line-end-position))))))

(defun contexture-sources--severity (type)
  "Return the severity that TYPE, a diagnostic's type, stands for, as a word.
A type that is not a usual one stands for itself."
  (let ((name (contexture--name type)))
    (if (string-match "error\\|warning\\|note" name) (match-string 0 name) name)))

;;;; Differences

;;;###autoload
(defun contexture-add-diff (&optional whole)
  "Add this file's differences from its last commit to this buffer's context.
With a prefix argument, WHOLE, add those of the whole project.  The version
control program runs in the background."
  (interactive (list (contexture--own-prefix)))
  (require 'vc)
  (pcase-let ((`(,backend ,target . ,metadata)
               (if whole (contexture-sources--diff-of-project)
                 (contexture-sources--diff-of-file))))
    (when (buffer-file-name (contexture--base-buffer))
      (vc-buffer-sync t))
    (contexture--with-adding-context
     (lambda (manager)
       (condition-case problem
           (contexture-sources--diff
            backend target
            (lambda (text) (contexture-sources--add-diff text manager metadata)))
         (error (contexture--user-error "%s" (error-message-string problem))))))))

(defconst contexture-sources--most-submodules 100
  "Maximum number of submodules whose changes are in the differences of a project.")

(defun contexture-sources--diff (backend target done)
  "Call DONE with the differences of TARGET from its last commit.
TARGET is a file, or the root of a project.  The VC backend BACKEND finds
them, except for Git: `vc-git-diff' would wait for Git."
  (if (eq backend 'Git)
      (let ((root (or (contexture--remote-root)
                      (file-name-as-directory
                       (expand-file-name (locate-dominating-file target ".git")))))
            (coding-system-for-read (vc-coding-system-for-diff target)))
        (if (equal target root)
            (contexture-sources--git-diffs (list (list root)) done
                                           contexture-sources--most-submodules)
          (contexture-sources--git-diff
           root (list "HEAD" "--" (file-local-name target))
           (lambda (text)
             (if (string-blank-p text) (contexture-sources--git-knows root target done)
               (funcall done text))))))
    (let ((buffer (generate-new-buffer " *contexture diff*"))
          (coding-system-for-read (vc-coding-system-for-diff target)))
      (condition-case problem
          (vc-call-backend backend 'diff (list target) nil nil buffer t)
        (error (kill-buffer buffer)
               (signal (car problem) (cdr problem))))
      (contexture-sources--when-finished
       buffer (lambda () (funcall done (contexture-sources--taken buffer)))))))

(defun contexture-sources--taken (buffer)
  "Return the text of BUFFER, which is killed."
  (prog1 (with-current-buffer buffer
           (buffer-substring-no-properties (point-min) (point-max)))
    (kill-buffer buffer)))

(defun contexture-sources--git (root arguments done &optional quietly)
  "Call DONE with the exit status and the output of Git with ARGUMENTS in ROOT.
Emacs does not wait for it, except on another machine: that is one exchange,
since for a process there, TRAMP would make another connection.  QUIETLY,
leave out what Git says of problems."
  (let* ((default-directory root)
         (process-environment (contexture--git-environment))
         (there (contexture--remote-p root))
         (command `("/bin/sh" "-c" ,(if quietly "exec \"$@\" 2>/dev/null" "exec \"$@\"") "sh"
                    ,@(contexture--git (file-local-name root) there) ,@arguments)))
    (if there
        (with-temp-buffer
          (setq default-directory root)
          (let ((status (apply #'process-file (car command) nil t nil (cdr command))))
            (funcall done status (buffer-string))))
      (let* ((buffer (generate-new-buffer " *contexture git*"))
             (process (make-process :name "contexture git" :buffer buffer :noquery t
                                    :connection-type 'pipe :sentinel #'ignore :command command)))
        (contexture-sources--when-finished
         buffer
         (lambda ()
           (funcall done (process-exit-status process) (contexture-sources--taken buffer))))))))

(defun contexture-sources--git-diff (root arguments done)
  "Call DONE with what Git with ARGUMENTS says is changed in ROOT.
Git runs no filter that the repository's own configuration names; those of the
user's stay.  If that cannot be made sure, or if Git fails, call DONE
with the reason."
  (let ((coding coding-system-for-read)
        ;; What is said of a filter are its very bytes.
        (coding-system-for-read 'binary))
    (contexture-sources--git
     root '("config" "--show-scope" "--name-only" "-z" "--get-regexp" "^filter\\.")
     (lambda (status text)
       (let ((filters (cl-loop for (scope name) on (split-string text "\0" t) by #'cddr
                               unless (member scope '("system" "global" "command"))
                               collect name))
             (coding-system-for-read coding))
         (cond ((not (memq status '(0 1)))
                (funcall done "Git does not tell which filters it would run"))
               ;; Git would take the beginning of such a name for the setting.
               ((cl-find-if (lambda (name) (string-search "=" name)) filters)
                (funcall done "The repository names a filter that cannot be turned off"))
               (t
                (contexture-sources--git
                 root
                 `(,@(cl-loop for name in filters
                              append (list "-c" (concat name (if (string-suffix-p ".required" name)
                                                                 "=false"
                                                               "="))))
                   "diff" ,@contexture--git-differences ,@arguments)
                 (lambda (status text)
                   (funcall done (if (eql status 0) text
                                   (or (car (last (split-string text "\n" t)))
                                       "Git does not tell what is changed")))))))))
     t)))

(defun contexture-sources--git-knows (root file done)
  "Call DONE with no text if Git knows FILE, below ROOT, or else with why not."
  (contexture-sources--git
   root (list "ls-files" "--error-unmatch" "--" (file-local-name file))
   (lambda (status _)
     (funcall done (if (eql status 0) ""
                     (contexture--format "%s is not under version control"
                                         (contexture--abbreviate file)))))
   t))

(defun contexture-sources--git-diffs (folders done left &optional before)
  "Call DONE with the differences of FOLDERS and of the submodules within them.
Each of FOLDERS is (ROOT . NAME), with the name of a submodule.  BEFORE are
texts that come first, the last one first, and LEFT says how many submodules
may follow.  Git itself would do what a submodule says."
  (pcase folders
    ('nil (funcall done (apply #'concat (nreverse before))))
    (`((,root . ,name) . ,more)
     (contexture-sources--git-diff
      root `(,@(and name (list (concat "--src-prefix=a/" name) (concat "--dst-prefix=b/" name)))
             "HEAD" "--")
      (lambda (text)
        (contexture-sources--submodules
         root
         (lambda (names)
           (let ((names (seq-take names left)))
             (contexture-sources--git-diffs
              (append (mapcar (lambda (it) (cons (concat root it) (concat name it))) names) more)
              done (- left (length names))
              (cons (if (or (null name) (string-match-p "\\`\\(?:diff \\|\\'\\)" text)) text
                      (format "%s: %s\n" name text))
                    before))))))))))

(defun contexture-sources--submodules (root done)
  "Call DONE with the folders of the submodules of ROOT that are there.
Their names are relative, and end in a slash."
  (let ((coding-system-for-read (or file-name-coding-system 'utf-8-unix)))
    (contexture-sources--git
     root '("config" "--file" ".gitmodules" "-z" "--get-regexp" "^submodule\\..*\\.path$")
     (lambda (_ text)
       (funcall
        done
        (contexture-sources--with-git
         root (cl-loop for entry in (split-string text "\0" t)
                       for name = (cadr (split-string entry "\n"))
                       when (and name (equal name (contexture--visible name))
                                 (not (string-match-p "\\`[/~]\\|\\(?:\\`\\|/\\)\\.\\.?\\(?:/\\|\\'\\)"
                                                      name)))
                       collect (file-name-as-directory name)))))
     t)))

(defconst contexture-sources--with-git-script
  "h=$(pwd -P); for n; do [ -e \"${n}.git\" ] && [ \"$(cd \"$n\" && pwd -P)/\" = \"$h/$n\" ] && \
printf '%s\\0' \"$n\"; done; true"
  "Shell script that prints those of its arguments that are work trees of Git.
The arguments are folders.  A link does not count as a work tree.")

(defun contexture-sources--with-git (root names)
  "Return those of NAMES, of folders below ROOT, that Git has work trees in.
Links do not count: Git does not follow them, and they could lead to ROOT."
  (if (contexture--remote-p root)
      (let ((default-directory root))
        (and names
             (split-string (or (apply #'contexture--ask-machine contexture-sources--with-git-script
                                      names)
                               "")
                           "\0" t)))
    (cl-remove-if-not (lambda (name)
                        (let ((folder (contexture--outside-file name root root)))
                          (and folder
                               (file-exists-p (concat folder ".git"))
                               (equal (file-truename folder)
                                      (concat (file-truename root) name)))))
                      names)))

(defun contexture-sources--diff-of-file ()
  "Return (BACKEND FILE . METADATA) for the differences of this buffer's file.
Signal an error if it is not under version control."
  (let* ((file (or (buffer-file-name (contexture--base-buffer))
                   (user-error "This buffer visits no file; \
with a prefix argument, this command adds the project's differences")))
         (backend (or (contexture-sources--backend file)
                      (contexture--user-error "%s is not under version control"
                                  (contexture--abbreviate file)))))
    `(,backend ,(expand-file-name file)
               ,@(contexture-sources--buffer-metadata
                  :filename :project :buffer))))

(defun contexture-sources--backend (file)
  "Return the VC backend of FILE, or nil.
Git is not asked, since Emacs would wait for it."
  (cond ((contexture--remote-p file) (contexture-sources--remote-backend))
        ((memq (vc-file-getprop file 'vc-backend) '(nil none Git))
         (if (locate-dominating-file file ".git") 'Git (vc-backend file)))
        (t (vc-backend file))))

(defun contexture-sources--diff-of-project ()
  "Return (BACKEND ROOT . METADATA) for the differences of the project.
ROOT is the root of the directory that is under version control."
  (let* ((remote (contexture--remote-p default-directory))
         (backend (or (if remote (contexture-sources--remote-backend)
                        (vc-responsible-backend default-directory t))
                      (contexture--user-error "%s is not under version control"
                                  (contexture--abbreviate default-directory))))
         (root (or (contexture--remote-root)
                   (file-name-as-directory
                    (expand-file-name
                     (vc-call-backend backend 'root default-directory))))))
    (list backend root :filename root)))

(defun contexture-sources--remote-backend ()
  "Return the backend of VC on the machine of this buffer, or signal an error.
It must be Git, since Emacs asks that machine for Git's differences."
  (contexture--connected-folder default-directory)
  (and (contexture--remote-root) 'Git))

(defun contexture-sources--when-finished (buffer function)
  "Call FUNCTION once the process of BUFFER, if there is one, has ended.
Wait for its sentinel: a dead process may still have unread output, but
when its sentinel runs, all output has arrived."
  (let ((process (get-buffer-process buffer)))
    (if (null process)
        (funcall function)
      (set-process-query-on-exit-flag process nil)
      (add-function :after (process-sentinel process)
                    (lambda (process _event)
                      (unless (process-live-p process)
                        (contexture--later function)))))))

(defun contexture-sources--add-diff (text manager metadata)
  "Add the differences TEXT to the context MANAGER.
METADATA is a plist of facts about them."
  (let* (;; Warnings may come first.
         (start (string-match "^\\(?:diff \\|Index: \\|--- \\|@@ \\)" text))
         (contexture-context manager))
    (cond (start
           (contexture--add
            (contexture-sources--params :text :diff (substring text start)
                                        `(,@metadata :language "diff"))))
          ((string-blank-p text)
           (contexture--message "%s has not changed since its last commit"
                                (contexture--place metadata)))
          (t (contexture--message "Nothing added; version control says: %s"
                                  (contexture--trim text))))))

;;;; Compilations

;;;###autoload
(defun contexture-add-compilation (&optional all)
  "Add the compilation error at point to this buffer's context.
This works in buffers of `compile', `grep' and similar commands.  With a
prefix argument, ALL, add all errors as one item."
  (interactive (list (contexture--own-prefix)))
  (require 'compile)
  (unless (compilation-buffer-p (current-buffer))
    (contexture--user-error "This is not a compilation buffer; first go to the error in %s"
                            (if (and (buffer-live-p next-error-last-buffer)
                                     (compilation-buffer-p next-error-last-buffer))
                                (buffer-name next-error-last-buffer)
                              "that of M-x compile or M-x grep")))
  (contexture--widened
    ;; This looks at the folders that make says it enters.
    (contexture--inertly (compilation--ensure-parse (point-max)))
    (if all
        (let ((texts (save-excursion
                       (goto-char (point-min))
                       (cl-loop while (not (eobp))
                                when (contexture-sources--message-here)
                                collect (contexture-sources--error-text (point))
                                do (forward-line)))))
          (unless texts
            (user-error "This buffer has no errors"))
          (contexture--add
           (contexture-sources--params
            :error :compilation (apply #'concat texts)
            (contexture-sources--error-metadata))))
      (contexture--add
       (contexture-sources--error-params
        (or (contexture-sources--error-position)
            (user-error "There is no error at point; \
with a prefix argument, this command adds all errors")))))))

(defun contexture-sources--error-params (position &optional metadata)
  "Return parameters of `add-item' for the error on the line of POSITION.
METADATA is the value of `contexture-sources--error-metadata', if known."
  (pcase-let ((`(,file . ,line) (contexture-sources--error-place position)))
    (contexture-sources--params
     :error :compilation (contexture-sources--error-text position)
     ;; Without its file, the line would seem to be one of this buffer.
     (append (and file (contexture--plist :filename file
                                          :start-line line :end-line line))
             (or metadata (contexture-sources--error-metadata))))))

(defun contexture-sources--error-metadata ()
  "Return the metadata that all errors of this buffer have."
  (append (contexture-sources--buffer-metadata :project :buffer :mode)
          '(:language "text")))

(defun contexture-sources--message-here ()
  "Return the compilation message that begins on this line, or nil.
Return nil for one below `compilation-skip-threshold', which belongs to the
message before it."
  (let* ((beg (line-beginning-position))
         (next (next-single-char-property-change
                beg 'compilation-message nil (line-end-position)))
         (message (or (get-text-property beg 'compilation-message)
                      (get-text-property next 'compilation-message))))
    (and message
         (>= (compilation--message->type message) compilation-skip-threshold)
         message)))

(defun contexture-sources--error-position ()
  "Return the start of the line that begins the error around point, or nil.
That is this line, or the nearest above it in the same paragraph."
  (save-excursion
    (forward-line 0)
    (while (not (or (contexture-sources--message-here) (bobp)
                    (looking-at-p "[ \t]*$")))
      (forward-line -1))
    (and (contexture-sources--message-here) (point))))

(defun contexture-sources--error-text (position)
  "Return the text of the error that begins at POSITION, whole lines.
It ends before the next error or blank line.  It begins one line above
POSITION if that line is the headline of the error."
  (save-excursion
    (goto-char position)
    (let ((beg (if (contexture-sources--headline-p)
                   (line-beginning-position 0)
                 (point))))
      (forward-line)
      (while (not (or (eobp) (looking-at-p "[ \t]*$")
                      (contexture-sources--message-here)))
        (forward-line))
      (let ((text (buffer-substring-no-properties beg (point))))
        (if (string-suffix-p "\n" text) text (concat text "\n"))))))

(defun contexture-sources--headline-p ()
  "Return non-nil if the line above is the headline of this line's error.
It is if it is not blank, and no error begins between the last blank line
and this line.  The matches of `grep' have no headlines."
  (and (not (derived-mode-p 'grep-mode))
       (not (bobp))
       (save-excursion
         (forward-line -1)
         (unless (looking-at-p "[ \t]*$")
           (while (not (or (bobp) (looking-at-p "[ \t]*$")
                           (contexture-sources--message-here)))
             (forward-line -1))
           (not (contexture-sources--message-here))))))

(defun contexture-sources--error-place (position)
  "Return (FILE . LINE) that the error on the line of POSITION names.
FILE is nil if there is no such file."
  (save-excursion
    (goto-char position)
    (pcase-let* ((loc (compilation--message->loc
                       (contexture-sources--message-here)))
                 (`(,name ,directory . ,_)
                  (compilation--file-struct->file-spec
                   (compilation--loc->file-struct loc)))
                 ;; Some compilers colour the name.
                 (name (contexture--plain-text name))
                 (file (contexture--outside-file name directory)))
      (cons (if (contexture--remote-p default-directory)
                (contexture-sources--remote-error-file name directory)
              (and file (file-exists-p file) file))
            (compilation--loc->line loc)))))

(defun contexture-sources--remote-error-file (name directory)
  "Return the file that NAME in DIRECTORY means on the machine of this buffer.
NAME comes from a compiler.  Return nil if it would be on another machine.  The
machine is not asked whether there is such a file."
  (let* ((machine (file-remote-p default-directory))
         (directory (or directory default-directory))
         (file (and machine (string-prefix-p machine directory)
                    (contexture--outside-file name (substring directory (length machine))))))
    (and file (concat machine file))))

;;; Add directories and projects

;; `contexture-add-directory' and `contexture-add-project' make the server
;; walk a directory.  Emacs does not wait: the echo area shows the progress,
;; `C-g' or `contexture-cancel' ends the walk, and at the end a message says
;; what was added, what was left out, and why.

(cl-defstruct (contexture-tree--walk (:constructor contexture-tree--make-walk)
                                     (:copier nil))
  "A directory, ROOT, that is being added to the context MANAGER.
ID is the id of the call on CONNECTION.  FILES are the files that were named
themselves, instead of ROOT, their folder.  UNSAVED is the number of files
below ROOT with unsaved edits.  ASKED is non-nil if the server was asked to
cancel the call, and FORGOTTEN if Emacs no longer waits for an answer."
  connection id root files manager unsaved asked forgotten)

(defvar contexture-tree--walks nil
  "Directories that are being added, the newest first.
Each is a `contexture-tree--walk'.")

(defvar contexture-tree--fetching nil
  "Timer that will ask another machine for further files, or nil.")

(defvar contexture-tree--release nil
  "Function that restores the usual meaning of the quit key, or nil.")

(defvar contexture-tree--map
  (let ((map (make-sparse-keymap)))
    (define-key map [remap keyboard-quit] #'contexture-cancel)
    map)
  "Keymap in force while a directory is being added.")

;;;; Commands

;;;###autoload
(defun contexture-add-directory (directory &optional mode hidden)
  "Add the files below DIRECTORY to this buffer's context.
The server reads them and skips ignored files, hidden files and files
that are not text.  MODE is `files', which makes each file an item, or
`listing', which makes one item of their names, sizes and tokens.  With a
prefix argument, HIDDEN, include hidden files.  Emacs does not wait;
\\[contexture-cancel] cancels."
  (interactive
   (list (read-directory-name "Add directory: " nil default-directory t)
         (contexture-tree--read-mode)
         (contexture--own-prefix)))
  (let ((root (file-name-as-directory (expand-file-name directory))))
    (cond ((contexture--remote-p root)
           (contexture-tree--add-remote (contexture--connected-folder root)
                                        (or mode 'files) hidden))
          ((contexture-outside--taken-p root)
           (user-error "The server cannot read directories in archives"))
          ((file-directory-p root) (contexture-tree--add root (or mode 'files) hidden))
          (t (contexture--user-error "%s is not a directory" (contexture--abbreviate root))))))

;;;###autoload
(defun contexture-add-project (&optional mode hidden)
  "Add the files of the project around this buffer to the buffer's context.
MODE and HIDDEN are as for `contexture-add-directory'."
  (interactive
   (progn (contexture-tree--project)
          (list (contexture-tree--read-mode) (contexture--own-prefix))))
  (contexture-add-directory (contexture-tree--project) mode hidden))

;;;###autoload
(defun contexture-cancel ()
  "Stop adding directories; add none of their files.
Use it again to give up on a server that does not answer."
  (interactive)
  (unless (or contexture-tree--walks contexture-tree--fetching)
    (user-error "No directory is being added"))
  (when contexture-tree--fetching
    (cancel-timer contexture-tree--fetching)
    (setq contexture-tree--fetching nil))
  (message "Cancelling...")
  (mapc #'contexture-tree--cancel contexture-tree--walks))

(defun contexture-tree--project ()
  "Return the root of the project around this buffer, or signal an error."
  (or (contexture--project-root) (contexture--remote-root)
      (user-error "This buffer belongs to no project")))

(defun contexture-tree--read-mode ()
  "Ask how to add the files; return `files' or `listing'."
  (let ((completion-extra-properties
         (list :annotation-function
               (lambda (mode)
                 (if (equal mode "files") "  each file is an item"
                   "  one item with names, sizes and tokens")))))
    (intern (completing-read (format-prompt "Add files or a listing" "files") '("files" "listing")
                             nil t nil nil "files"))))

;;;; A walk

(defun contexture-tree--add (root mode hidden)
  "Have the server add the files below ROOT, a directory.
MODE and HIDDEN are as for `contexture-add-directory'."
  (contexture-tree--call root nil mode
                         (contexture--plist :path root :hidden (and hidden t))))

(defun contexture-tree--add-files (files mode)
  "Have the server add FILES, files and directories of this machine.
MODE is as for `contexture-add-directory'.  Ask once about those that look
like secrets, and leave them out if the answer is no."
  (let* ((files (mapcar #'expand-file-name files))
         (secret (cl-remove-if-not #'contexture--secret-file-p files))
         (confirmed (contexture--confirm-secrets (mapcar #'contexture--last-name secret)))
         (chosen (if confirmed files (cl-set-difference files secret :test #'equal))))
    (if (null chosen)
        (contexture--message "Nothing added: %s may hold secrets"
                             (contexture--some-of (mapcar #'contexture--last-name secret)))
      (contexture-tree--call (if (cdr files) nil (concat (car files) "/"))
                             chosen mode
                             (list :paths (vconcat chosen)
                                   :secrets (if (and secret confirmed) :add :omit))))))

(defun contexture-tree--call (root files mode params)
  "Call `add-tree' with PARAMS and MODE for ROOT, or for FILES.
ROOT is nil if there are several files."
  (contexture--with-adding-context
   (lambda (manager) (contexture-tree--begin root files mode params manager))))

(defun contexture-tree--begin (root files mode params manager)
  "Call `add-tree' for the context MANAGER.
ROOT, FILES, MODE and PARAMS are as for `contexture-tree--call'."
  (let ((walk (contexture-tree--make-walk
               :root (or root default-directory) :manager manager :files (and (null root) files)
               :connection (contexture-current-connection)
               :unsaved (if (eq mode 'files) 0 (contexture-tree--unsaved root)))))
    (setf (contexture-tree--walk-id walk)
          (contexture-request-async
           'add-tree
           `(,@params :manager ,manager
             ,@(contexture--plist :mode (intern (format ":%s" mode))
                                  :live (and (eq mode 'files) t)))
           :success (apply-partially #'contexture-tree--added walk)
           :error (apply-partially #'contexture-tree--refused walk)))
    (push walk contexture-tree--walks)
    (add-hook 'contexture-notification-functions #'contexture-tree--progress)
    (add-hook 'contexture-connected-hook #'contexture-tree--cancel-again)
    (unless contexture-tree--release
      (setq contexture-tree--release
            (set-transient-map contexture-tree--map
                               (lambda () contexture-tree--walks))))
    (contexture-tree--show (contexture-tree--progress-text walk nil))))

(defun contexture-tree--end (walk)
  "Record that WALK has ended.
If it was the last one, restore the quit key."
  (setq contexture-tree--walks (delq walk contexture-tree--walks))
  (unless contexture-tree--walks
    (remove-hook 'contexture-notification-functions #'contexture-tree--progress)
    (remove-hook 'contexture-connected-hook #'contexture-tree--cancel-again)
    (when contexture-tree--release
      (funcall contexture-tree--release)
      (setq contexture-tree--release nil))))

(defun contexture-tree--cancel (walk)
  "Ask the server to stop WALK.
If it was asked already, or cannot be reached, no longer wait for its
answer."
  (let ((connection (contexture-tree--walk-connection walk)))
    (if (and (jsonrpc-running-p connection)
             (not (contexture-tree--walk-asked walk)))
        (progn (setf (contexture-tree--walk-asked walk) t)
               (contexture-tree--send-cancel walk))
      (setf (contexture-tree--walk-forgotten walk) t)
      (contexture--cancel connection (contexture-tree--walk-id walk)))))

(defun contexture-tree--send-cancel (walk)
  "Ask the server to stop WALK, without waiting.
The answer to WALK's own call shows whether this request came in time."
  (jsonrpc-notify (contexture-tree--walk-connection walk) 'cancel
                  (list :id (contexture-tree--walk-id walk))))

(defun contexture-tree--cancel-again ()
  "Cancel again the walks that were cancelled before the server went away.
The connection has just repeated their calls."
  (dolist (walk contexture-tree--walks)
    (when (and (contexture-tree--walk-asked walk)
               (jsonrpc-running-p (contexture-tree--walk-connection walk)))
      (contexture-tree--send-cancel walk))))

(defun contexture-tree--unsaved (root)
  "Return the number of files below ROOT with unsaved edits."
  (cl-count-if (lambda (buffer)
                 (and (buffer-modified-p buffer)
                      (buffer-file-name buffer)
                      (string-prefix-p root (expand-file-name
                                             (buffer-file-name buffer)))))
               (buffer-list)))

;;;; Directories on another machine

;; The server cannot read them.  Emacs asks the machine for the names first, and
;; then for the texts, some at a time: between two exchanges, the user can type.

(defconst contexture-tree--most-remote 500
  "Maximum number of files of a directory on another machine to add.")

(defconst contexture-tree--largest-remote (* 512 1024)
  "Maximum size in bytes of a file of a directory on another machine.")

(defconst contexture-tree--remote-step 16384
  "Maximum number of bytes of files in one exchange with another machine.")

(defconst contexture-tree--remote-pause 0.01
  "Number of seconds between two exchanges with another machine.")

(defconst contexture-tree--remote-script
  "for name; do [ -f \"$name\" ] && [ ! -L \"$name\" ] && base64 <\"$name\"; echo .; done"
  "Script for a shell that prints files, encoded, with a full stop after each.")

(defun contexture-tree--add-remote (root mode hidden &optional names)
  "Add the files below ROOT, a directory on another machine, or those with NAMES.
MODE and HIDDEN are as for `contexture-add-directory'."
  (let* ((default-directory root)
         (listing (or (apply #'contexture--ask-machine
                             (concat (if names "printf '%s\\0' \"$@\""
                                       (contexture--list-files-script nil hidden))
                                     " | xargs -0 ls -dln 2>/dev/null | cat")
                             names)
                      (contexture--user-error "%s cannot be listed" (contexture--abbreviate root))))
         (found (contexture-tree--remote-entries listing (or hidden names)))
         (entries (car found))
         (large (cl-remove-if (lambda (it) (<= (cdr it) contexture-tree--largest-remote)) entries))
         (chosen (cl-set-difference entries large)))
    (cond ((null (or entries names))
           (contexture--user-error "There are no files in %s" (contexture--abbreviate root)))
          ((eq mode 'listing)
           (contexture--add
            (contexture-sources--params
             :file :listing
             (mapconcat (pcase-lambda (`(,name . ,size)) (format "%s (%d bytes)\n" name size))
                        entries "")
             (contexture--plist :filename root :project (contexture--remote-root)))))
          (t (contexture-tree--fetch
              root (seq-take chosen contexture-tree--most-remote)
              (append
               (contexture-tree--phrases "%s is no file"
                                         (cl-set-difference names (mapcar #'car entries)
                                                            :test #'equal))
               (contexture-tree--phrases "%s is too large" (mapcar #'car large))
               (contexture-tree--phrases "%s is one too many"
                                         (mapcar #'car (nthcdr contexture-tree--most-remote
                                                               chosen)))
               (and (null names) (cdr found))))))))

(defun contexture-tree--phrases (format names)
  "Return FORMAT with each of NAMES, a list of strings."
  (mapcar (lambda (name) (format format name)) names))

(defun contexture-tree--remote-entries (listing hidden)
  "Return (FILES . LEFT-OUT) for LISTING, the output of ls.
FILES are (NAME . SIZE), without hidden ones and backups, unless HIDDEN, and
without links.  LEFT-OUT are phrases about the others."
  (cl-loop for line in (split-string listing "\n" t)
           for at = (string-match "\\`[-l][^ ]* +[0-9]+ +[0-9]+ +[0-9]+ +\\([0-9]+\\) +[^ ]+ +[^ ]+ +[^ ]+ \\(?:\\./\\)?\\(.*\\)\\'"
                                  line)
           for name = (and at (match-string 2 line))
           for size = (and at (string-to-number (match-string 1 line)))
           for why = (cond ((null at) nil)
                           ((eq (aref line 0) ?l) "is a link")
                           ((not (equal name (contexture--visible name)))
                            "has hidden characters in its name")
                           (hidden nil)
                           ((string-match-p "~\\'\\|\\(?:\\`\\|/\\)#[^/]*#\\'" name) "is a backup")
                           ((string-match-p "\\(?:\\`\\|/\\)\\." name) "is hidden"))
           if why collect (format "%s %s" (car (split-string name " -> ")) why) into left
           else if at collect (cons name size) into files
           finally return (cons files left)))

(defun contexture-tree--fetch (root entries refused)
  "Add the files of ENTRIES, each (NAME . SIZE), below ROOT, on another machine.
What looks like a secret is asked about.  REFUSED are phrases about what is not
added."
  (let* ((buffer (current-buffer))
         (secret (cl-remove-if-not #'contexture--secret-file-p (mapcar #'car entries)))
         (confirmed (contexture--confirm-secrets (mapcar #'contexture--last-name secret)))
         (left (if confirmed entries
                 (cl-remove-if (lambda (it) (member (car it) secret)) entries)))
         (total (length left))
         calls)
    (unless confirmed
      (setq refused (append refused (contexture-tree--phrases "%s may hold secrets" secret))))
    (cl-labels
        ((fetch (some)
           (pcase-dolist (`(,name . ,text) (contexture-tree--fetch-some root some))
             (if (null text) (push (concat name " is no text") refused)
               (push (contexture-tree--remote-call root name text (and (member name secret) t))
                     calls)))
           (contexture-tree--show
            (format "Adding %s: %d of %d files (%s cancels)" (contexture--abbreviate root)
                    (- total (length left)) total (contexture--key 'contexture-cancel)))
           (setq contexture-tree--fetching (run-at-time contexture-tree--remote-pause nil #'go-on)))
         (go-on ()
           (setq contexture-tree--fetching nil)
           (contexture--with-live-buffer buffer
             (condition-case problem
                 (if (null left) (contexture-tree--add-fetched (nreverse calls) refused)
                   (fetch (cl-loop for size = (cdar left) then (+ size (cdar left))
                                   collect (car (pop left))
                                   while (and left (< size contexture-tree--remote-step)))))
               (user-error (contexture--message "%s" (error-message-string problem)))))))
      (go-on))))

(defun contexture-tree--fetch-some (root names)
  "Return the files NAMES below ROOT, on another machine, as (NAME . TEXT).
TEXT is nil for what is no text.  Signal an error if there is no
connection any more: then nothing is added."
  (let* ((default-directory root)
         (output (or (apply #'contexture--ask-machine contexture-tree--remote-script names)
                     (contexture--user-error "Nothing added: the connection to %s is gone"
                                             (file-remote-p root))))
         (parts (split-string output "^\\.\n")))
    (cl-loop for name in names
             for bytes = (ignore-errors (base64-decode-string (or (pop parts) "")))
             collect (cons name
                           (and bytes
                                (not (string-search "\0" bytes))
                                (decode-coding-string bytes 'undecided))))))

(defun contexture-tree--remote-call (root name text secret)
  "Return the call that adds TEXT of the file NAME below ROOT.
If a buffer has the file, its text counts instead, and follows the
buffer.  SECRET means that the user agreed to send it."
  (let* ((file (concat root name))
         (buffer (contexture--visited-buffer file)))
    `(add-item ,@(if buffer (contexture--capture-file buffer nil nil)
                   (list :type :file :content text
                         :metadata (append (contexture--plist
                                            :filename file
                                            :project (contexture--remote-root)
                                            :language (contexture--file-mode file))
                                           '(:origin :file) (contexture--as-of))))
               :secrets ,(if secret :add :ask))))

(defun contexture-tree--add-fetched (calls refused)
  "Make CALLS, which add files of another machine, as one addition.
REFUSED are phrases about what is not added."
  (if (null calls)
      (contexture--message "Nothing added: %s" (contexture--some-of refused))
    (contexture--add-batch
     calls
     (lambda (manager outcomes)
       (contexture-sources--tell-all
        manager "file" (reverse (delq nil (contexture--pluck :result outcomes)))
        (append refused
                (delq nil (mapcar (lambda (outcome)
                                    (contexture--refusal-text (plist-get outcome :error)))
                                  outcomes))))))))

;;;; Messages

(defun contexture-tree--show (text)
  "Show TEXT in the echo area, unless a minibuffer is active."
  (unless (active-minibuffer-window)
    (let ((message-log-max nil))
      (message "%s" text))))

(defun contexture-tree--progress (method params)
  "Show the progress of a walk if the notification METHOD reports it in PARAMS."
  (when (eq method 'progress)
    (when-let* ((walk (cl-find (plist-get params :id) contexture-tree--walks
                               :key #'contexture-tree--walk-id)))
      (unless (contexture-tree--walk-asked walk)
        (contexture-tree--show (contexture-tree--progress-text walk params))))))

(defun contexture-tree--progress-text (walk params)
  "Return a phrase for the progress of WALK, from PARAMS.
PARAMS are those of a notification, or nil at the beginning."
  (format "Adding %s to %s%s (%s cancels)"
          (contexture--abbreviate (contexture-tree--walk-root walk))
          (contexture--label (contexture-tree--walk-manager walk))
          (if params
              (format ": %s %s, %s"
                      (contexture--count (or (plist-get params :files) 0) "file")
                      (if (eq (plist-get params :stage) :walking) "found" "read")
                      (file-size-human-readable (or (plist-get params :bytes) 0)
                                                'si " " "B"))
            "...")
          (substitute-command-keys "\\[keyboard-quit]")))

(defun contexture-tree--added (walk result)
  "Show a message that the files of WALK were added.
RESULT is that of the method `add-tree'.  Marked files that are not UTF-8
text are added first, as Emacs decodes them."
  (contexture-tree--end walk)
  (let* ((manager (contexture-tree--walk-manager walk))
         (contexture-context manager)
         (calls (contexture-tree--decoded-calls walk result)))
    (if (null calls)
        (contexture-tree--tell-added walk result)
      (contexture--add-batch
       calls
       (lambda (_ outcomes)
         (let ((items (delq nil (contexture--pluck :result outcomes))))
           (plist-put result :files (+ (plist-get result :files) (length items)))
           (plist-put result :tokens (+ (plist-get result :tokens)
                                        (contexture--sum :tokens items)))
           (contexture-tree--tell-added walk result)))
       (plist-get result :version)))))

(defun contexture-tree--decoded-calls (walk result)
  "Return calls that add the marked files of WALK that the server cannot read.
These are the files that RESULT, of `add-tree', names as binary and that
Emacs can decode.  They are then no longer listed as left out."
  (when-let* ((named (and (contexture-tree--walk-files walk)
                          (plist-get (plist-get result :skipped) :named))))
    (let ((root (plist-get result :root)) calls done)
      (dolist (entry named)
        (let ((file (contexture--inertly (expand-file-name (plist-get entry :path) root))))
          (when (and (eq (plist-get entry :reason) :binary)
                     (member file (contexture-tree--walk-files walk)))
            (when-let* ((call (ignore-errors (contexture--decoded-call file nil nil nil))))
              (push entry done)
              (push call calls)))))
      (when calls
        (let ((skipped (plist-get result :skipped)))
          (plist-put skipped :named (cl-set-difference named done))
          (plist-put skipped :total
                     (cl-loop for (reason number) on (plist-get skipped :total) by #'cddr
                              for left = (if (eq reason :binary) (- number (length done))
                                           number)
                              when (> left 0) nconc (list reason left)))))
      (nreverse calls))))

(defun contexture-tree--tell-added (walk result)
  "Show the message that the files of WALK were added, as RESULT says.
If some were left out that could be added, a key adds them."
  (let ((manager (contexture-tree--walk-manager walk)))
    (contexture-request-async
     'list-items (list :manager manager :count-only t)
     :success
     (lambda (summary)
       ;; The server does not say which items the files cover.
       (contexture--with-size
        manager (append summary '(:covers t))
        (lambda (size)
          (contexture--message "%s%s" (contexture-tree--added-text walk result size)
                               (contexture-tree--offer-rest manager result))))))))

(defconst contexture-tree--can-be-added '(:ignored :hidden :secret :backup)
  "Reasons for which a file is left out that can be added nevertheless.")

(defun contexture-tree--offer-rest (manager result)
  "Let `+' add to MANAGER what RESULT, of `add-tree', left out; return a phrase.
Return nil if that is nothing."
  (when-let* ((root (plist-get result :root))
              (rest (cl-loop for entry in (plist-get (plist-get result :skipped) :named)
                             for file = (and (memq (plist-get entry :reason)
                                                   contexture-tree--can-be-added)
                                             (contexture--outside-file (plist-get entry :path)
                                                                       root root))
                             when file collect file)))
    (let ((map (make-sparse-keymap)))
      (define-key map "+" (lambda ()
                            (interactive)
                            (let ((contexture-context manager))
                              (contexture-tree--add-files rest 'files))))
      (set-transient-map map)
      (format "; + adds %s" (contexture--some-of (mapcar #'contexture--last-name rest))))))

(defun contexture-tree--added-text (walk result size)
  "Return the message that the files of WALK were added.
RESULT is that of the method `add-tree'; SIZE is a phrase for the size of the
context now."
  (let ((files (or (plist-get result :files) 0))
        (evicted (length (plist-get result :evicted)))
        (unsaved (contexture-tree--walk-unsaved walk)))
    (concat
     (format "Added %s%s%s (%s) to %s (%s)"
             (if (eq (plist-get result :mode) :listing) "a listing of " "")
             (contexture--count files "file")
             (if (contexture-tree--walk-files walk) ""
               (concat " of " (contexture--abbreviate (contexture-tree--walk-root walk))))
             (contexture--count (or (plist-get result :tokens) 0) "token")
             (contexture--label (contexture-tree--walk-manager walk))
             size)
     (contexture--evicted-text evicted)
     (contexture-tree--skipped-text (plist-get result :skipped))
     (when (> unsaved 0)
       (format "; unsaved edits of %s are not included"
               (contexture--count unsaved "file"))))))

(defun contexture-tree--skipped-text (skipped)
  "Return a phrase for files that were left out and the reasons, or nil.
SKIPPED is a plist in the result of the method `add-tree'."
  (when-let* ((total (plist-get skipped :total)))
    (concat "; left out "
            (mapconcat
             (pcase-lambda (`(,reason ,number))
               (format "%d %s (%s)" number
                       (string-replace "-" " " (contexture--name reason))
                       (contexture-tree--names reason number
                                               (plist-get skipped :named))))
             (seq-partition total 2) ", "))))

(defconst contexture-tree--names 3
  "Maximum number of files to name for each reason to leave files out.")

(defun contexture-tree--names (reason number named)
  "Return names of files left out for REASON, of which there are NUMBER.
NAMED has plists with `:path' and `:reason'."
  (let ((names (cl-loop for entry in named
                        when (eq (plist-get entry :reason) reason)
                        collect (plist-get entry :path) into names
                        finally return (seq-take names contexture-tree--names))))
    (string-join (append names (and (> number (length names)) '("..."))) ", ")))

(defun contexture-tree--refused (walk problem)
  "Show a message that no file of WALK was added because of PROBLEM, an error.
PROBLEM may also be that the user cancelled WALK."
  (contexture-tree--end walk)
  (let ((root (contexture--abbreviate (contexture-tree--walk-root walk)))
        (label (contexture--label (contexture-tree--walk-manager walk))))
    (cond ((contexture-tree--walk-forgotten walk)
           (contexture--message "Gave up on %s; the server may still add its files to %s" root label))
          ((eql (plist-get problem :code) -32800)
           (contexture--message "Cancelled: nothing of %s was added to %s" root label))
          (t (contexture--tell-refused (contexture-tree--walk-manager walk)
                                       problem)))))

;;; Add a symbol's definition

;; `contexture-add-symbol' finds where a symbol is defined and adds that
;; text.  It tries xref, if the buffer's backend can answer without asking
;; the user for a tags table; then imenu; then the open files of the
;; project; then, for symbols of Emacs Lisp, Emacs's own records; then the
;; lines of the project's files.  Buffers opened for the search are killed
;; again.

;;;###autoload
(defun contexture-add-symbol (name)
  "Add the definition of the symbol called NAME to this buffer's context.
Interactively, that is the symbol at point, or one that you type."
  (interactive (list (contexture-symbol--read)))
  (when (or (null name) (string-empty-p name))
    (user-error "No symbol was given"))
  (contexture--add (contexture-symbol--find name)))

(defun contexture-symbol--find (name)
  "Return parameters of `add-item' for the definition of the symbol called NAME.
Ask the user if there are several; signal an error if there is none."
  (let ((places (contexture-symbol--places))
        (enable-local-variables :safe)) ; a file opened for this asks nothing
    (unwind-protect
        (let ((marker (or (or (contexture-symbol--by-xref name)
                              (contexture-symbol--by-buffers name)
                              (contexture-symbol--by-emacs name)
                              (when-let* ((found (contexture-symbol--in-project name)))
                                ;; Others may have opened buffers meanwhile.
                                (setq places (contexture-symbol--places))
                                (contexture-symbol--marker found)))
                          (user-error
                           (if (contexture-symbol--primitive-p name)
                               "%s is written in C, and its source is not on this machine"
                             "No definition of %s was found")
                           name))))
          (contexture-symbol--capture name marker))
      ;; Emacs goes to the definition in an open buffer to find it.
      (cl-loop for (buffer . point) in places
               when (buffer-live-p buffer)
               do (with-current-buffer buffer (goto-char point)))
      (contexture-symbol--close-new (mapcar #'car places)))))

(defun contexture-symbol--places ()
  "Return an alist from each buffer to the position of point in it."
  (mapcar (lambda (buffer) (cons buffer (with-current-buffer buffer (point))))
          (buffer-list)))

(defvar contexture-symbol-history nil
  "Minibuffer history of names of symbols.")

(defun contexture-symbol--read ()
  "Ask for a symbol's name, by default that at point; return it."
  (let ((default (thing-at-point 'symbol t))
        (map (make-sparse-keymap)))
    (define-key map [remap minibuffer-complete]
                (lambda () (interactive) (contexture-symbol--complete)))
    (minibuffer-with-setup-hook
        (lambda () (use-local-map (make-composed-keymap map (current-local-map))))
      (completing-read (format-prompt "Add symbol" (contexture--visible default))
                       (contexture-symbol--table)
                       nil nil nil 'contexture-symbol-history default))))

(defun contexture-symbol--complete ()
  "Complete the name in the minibuffer; if that fails, say what finds it."
  (let ((completion-fail-discreetly t))
    ;; Completion also returns nil if it scrolls the window of candidates.
    (unless (or (minibuffer-complete) (window-live-p minibuffer-scroll-window))
      (minibuffer-message "No open file has such a symbol; RET searches the project"))))

(defun contexture-symbol--table ()
  "Return a completion table of symbols to add.
It has those of xref, if its backend asks no questions, and those of this
buffer and of the open files of its project, as completion after `@' has."
  (require 'contexture-mention)
  (let ((buffer (current-buffer))
        (known (when-let* ((backend (contexture-symbol--backend)))
                 (ignore-errors (xref-backend-identifier-completion-table backend)))))
    (completion-table-merge
     (completion-table-dynamic
      (lambda (string)
        (or (contexture--with-live-buffer buffer (contexture-mention--symbols))
            (unless known (all-completions string obarray)))))
     known)))

(defun contexture-symbol--capture (name marker)
  "Return parameters of `add-item' for the definition of NAME at MARKER."
  (let ((docstring (and (provided-mode-derived-p
                         (buffer-local-value 'major-mode (marker-buffer marker))
                         'emacs-lisp-mode)
                        (when-let* ((symbol (intern-soft name)))
                          (ignore-errors
                            (if (fboundp symbol)
                                (documentation symbol t)
                              (documentation-property
                               symbol 'variable-documentation t)))))))
    (with-current-buffer (marker-buffer marker)
      (contexture--widened
        (goto-char marker)
        (let ((definition (contexture-defun-at-point)))
          (contexture--capture
           (or (plist-get definition :beg) (line-beginning-position))
           (or (plist-get definition :end) (line-end-position))
           :symbol
           :symbol name :symbol-kind (plist-get definition :kind)
           :docstring docstring))))))

(defun contexture-symbol--primitive-p (name)
  "Return non-nil if NAME is an Emacs function or variable written in C."
  (when-let* ((symbol (intern-soft name)))
    (or (subr-primitive-p (symbol-function symbol))
        ;; Its documentation is in Emacs's DOC file, and no Lisp file defines it.
        (and (integerp (get symbol 'variable-documentation))
             (null (symbol-file symbol 'defvar))))))

(defun contexture-symbol--close-new (buffers)
  "Kill the unmodified buffers that visit files and are not among BUFFERS."
  (dolist (buffer (buffer-list))
    (when (and (not (memq buffer buffers))
               (buffer-file-name buffer)
               (not (buffer-modified-p buffer)))
      (kill-buffer buffer))))

;;;; Where definitions are

(defun contexture-symbol--backend ()
  "Return the xref backend of this buffer, or nil if it would ask questions.
Etags asks for a tags table if none is known."
  (require 'xref)
  (let ((backend (xref-find-backend)))
    (unless (and (eq backend 'etags)
                 (not (bound-and-true-p tags-file-name))
                 (not (bound-and-true-p tags-table-list)))
      backend)))

(defun contexture-symbol--by-xref (name)
  "Return a marker where xref says that NAME is defined, or nil.
Let the user choose if there are several definitions."
  (when-let* ((items (contexture-symbol--xref-items name)))
    (contexture-symbol--marker (contexture-symbol--choose items))))

(defun contexture-symbol--xref-items (name)
  "Return the xref items that xref finds for the definition of NAME, or nil."
  (when-let* ((backend (contexture-symbol--backend)))
    (ignore-errors
      (xref-backend-definitions
       backend (or (and (equal name (thing-at-point 'symbol t))
                        (xref-backend-identifier-at-point backend))
                   name)))))

(defun contexture-symbol--choose (items)
  "Return one of the xref ITEMS, chosen by the user if there are several."
  (if (null (cdr items))
      (car items)
    (let ((choices (mapcar (lambda (item)
                             (cons (contexture--visible-candidate
                                    (contexture-symbol--choice item))
                                   item))
                           items)))
      (cdr (assoc (completing-read (format-prompt "Which definition" (caar choices))
                                   choices nil t nil nil (caar choices))
                  choices)))))

(defun contexture-symbol--choice (item)
  "Return the text by which the user chooses the xref ITEM: place and summary."
  (format "%s: %s" (contexture-symbol--place item)
          (contexture--trim (substring-no-properties (xref-item-summary item)))))

(defun contexture-symbol--place (item)
  "Return the file of the xref ITEM, or its group, and the line if it is known."
  (let* ((location (xref-item-location item))
         (file (xref-location-group location))
         (root (contexture--project-root))
         (line (ignore-errors (xref-location-line location))))
    (format "%s%s"
            (if (file-name-absolute-p file)
                (or (contexture--relative file root) (contexture--abbreviate file))
              file)
            (if line (format ":%d" line) ""))))

(defun contexture-symbol--marker (item)
  "Return a marker at the xref ITEM, or nil if its source cannot be found.
Do not let Emacs ask where its own C sources are, or connect to a machine
because a server of a language, or a table of tags, names it."
  (require 'find-func)
  (let ((find-function-C-source-directory
         (or find-function-C-source-directory "/nonexistent"))
        ;; The user asked for no file: its repository runs nothing, and it chooses no mode.
        (vc-handled-backends nil)
        (enable-local-variables nil)
        (magic-mode-alist nil))
    (condition-case nil
        (let* ((location (xref-item-location item))
               (file (xref-location-group location)))
          (and (or (xref-elisp-location-p location) ; Emacs itself names the file
                   (xref-buffer-location-p location)
                   (let ((here (contexture-symbol--here-p file)))
                     (if (stringp here) (contexture--visit-quietly here) here)))
               (xref-location-marker location)))
      (error nil))))

(defun contexture-symbol--here-p (file)
  "Return non-nil if FILE, from outside, is open, or on this buffer's machine.
It is not if a file-name handler would take it there.  Return the name of a
local file that is not open."
  (let ((machine (and (contexture--remote-p default-directory)
                      (file-remote-p default-directory)))
        (name (contexture--inertly (expand-file-name file))))
    (or (contexture--visited-buffer name)
        (if (and machine (string-prefix-p machine name))
            (and (contexture--outside-file (substring name (length machine)) "/") t)
          (when-let* ((file (contexture--outside-file name "/")))
            (and (file-regular-p file) file))))))

(defconst contexture-symbol--most-indexed 100000
  "Maximum size, in characters, of a buffer of which imenu makes an index.
Modes such as that for Java take a tenth of a second for so much.")

(defun contexture-symbol--imenu ()
  "Return an alist from the names of definitions in this buffer to markers.
They come from imenu's index or, if the major mode has none or the buffer is
large, from the lines that look like heads of definitions."
  (require 'imenu)
  (require 'contexture-code)
  (let ((imenu-auto-rescan t))
    (condition-case nil
        ;; Where a Lisp mode finds no definition, its index has nil.
        (if (> (buffer-size) contexture-symbol--most-indexed)
            (error "Too large")
          (contexture-symbol--flatten (remq nil (imenu--make-index-alist t))))
      (error (when (contexture-symbol--code-p (current-buffer))
               (contexture-defun--heads))))))

(defun contexture-symbol--flatten (index &optional parent)
  "Return the leaves of INDEX, an imenu alist, each as (NAME . MARKER).
PARENT is the name of the entry that INDEX is below, or nil."
  (cl-loop for (label . place) in index
           for name = (contexture-symbol--label-name label parent)
           if (imenu--subalist-p (cons label place))
           append (contexture-symbol--flatten place name)
           else if (contexture-symbol--position place)
           collect (cons name (contexture-symbol--position place))))

(defun contexture-symbol--label-name (label parent)
  "Return the name that LABEL, of an entry of imenu below PARENT, stands for.
PARENT is the name of that entry, or nil.  Python's labels are
\"helper (def)\" and \"Big (class)...\", and \"*class definition*\" for the
class itself."
  (let ((label (substring-no-properties label)))
    (if (and parent (string-match-p "\\`\\*.* definition\\*\\'" label))
        parent
      (replace-regexp-in-string "\\(?: ([^)]*)\\)?\\(?:\\.\\.\\.\\)?\\'" ""
                                label))))

(defun contexture-symbol--position (place)
  "Return a marker at PLACE, where an entry of imenu points, or nil."
  (cond ((markerp place) place)
        ((overlayp place) (copy-marker (overlay-start place)))
        ((and (integerp place) (> place 0)) (copy-marker place))
        ((consp place) (contexture-symbol--position (car place)))))

(defun contexture-symbol--by-emacs (name)
  "Return a marker where the Emacs Lisp symbol NAME is defined, or nil.
That is a function, a variable or a face."
  (require 'find-func)
  (when-let* ((symbol (intern-soft name)))
    (let ((find-function-C-source-directory
           (or find-function-C-source-directory "/nonexistent")))
      (cl-loop for type in '(nil defvar defface)
               for place = (ignore-errors
                             (save-current-buffer
                               (find-definition-noselect symbol type)))
               when (cdr place)
               return (with-current-buffer (car place)
                        (copy-marker (cdr place)))))))

(defun contexture-symbol--by-buffers (name)
  "Return a marker where this buffer, or another of the project, defines NAME.
Return nil if none does."
  (or (when-let* ((found (save-excursion
                           (contexture--widened (contexture-symbol--positions name)))))
        (copy-marker (car found)))
      (when-let* ((found (contexture-symbol--in-buffers name)))
        (contexture-symbol--marker (contexture-symbol--choose found)))))

(defun contexture-symbol--in-buffers (name)
  "Return a list of an xref item for each definition of NAME in code buffers.
Those are the buffers of `contexture-symbol--code-buffers'."
  (cl-loop for buffer in (contexture-symbol--code-buffers)
           append (with-current-buffer buffer
                    (contexture--widened
                      (mapcar #'contexture-symbol--item-at
                              (contexture-symbol--positions name))))))

(defun contexture-symbol--positions (name)
  "Return the positions of the definitions of NAME in this buffer."
  (require 'contexture-code)
  (goto-char (point-min))
  (when (search-forward name nil t)     ; an index of names takes longer
    (or (mapcar #'car (contexture-defun--named name))
        (cl-loop for (label . place) in (contexture-symbol--imenu)
                 when (equal label name) collect place))))

(defun contexture-symbol--item-at (beg)
  "Return an xref item for the definition that begins at BEG in this buffer."
  (require 'xref)
  (goto-char beg)
  (contexture-defun--skip-preamble)
  (xref-make (buffer-substring-no-properties (line-beginning-position) (line-end-position))
             (xref-make-file-location buffer-file-name (line-number-at-pos) 0)))

(defun contexture-symbol--code-buffers ()
  "Return the buffers of the project's files, except for prose.
Outside of a project, the files are those below `default-directory'."
  (require 'contexture-code)
  (cl-remove-if-not #'contexture-symbol--code-p
                    (contexture--project-buffers
                     (or (contexture--project-root) (contexture--remote-root)
                         default-directory))))

(defun contexture-symbol--code-p (buffer)
  "Return non-nil if BUFFER visits a file that is not prose."
  (with-current-buffer buffer
    (and buffer-file-name
         (not (derived-mode-p 'text-mode))
         (not (string-match-p contexture-defun-prose--files buffer-file-name)))))

(defun contexture-symbol--in-project (name)
  "Return an xref item for a definition of NAME in a file of the project, or nil.
This finds what no backend of xref knows, without a tags table or a language
server, also in files that are neither open nor loaded."
  (when-let* ((root (contexture--project-root))
              (files (and (executable-find "xargs") (contexture-symbol--files root)))
              (found (contexture-symbol--grep name files)))
    (contexture-symbol--choose found)))

(defun contexture-symbol--files (root)
  "Return the files of the project in ROOT, once all are listed.
Leave out those to which links lead out of the project: nobody asked to search
them.  Quitting ends the wait, and Git is ended in time; `project-files' would
do what the repository says."
  (require 'contexture-mention)
  (when-let* ((list (contexture-files--of root nil)))
    (contexture-files--wait list)
    (contexture--inertly
      (let ((inside (file-name-as-directory (file-truename root)))
            (folders (make-hash-table :test #'equal)))
        (cl-loop for name in (contexture-files--list-names list)
                 for file = (concat root name)
                 for folder = (file-name-directory file)
                 when (string-prefix-p
                       inside
                       (cond ((file-symlink-p file) (file-truename file))
                             ((gethash folder folders))
                             (t (puthash folder (file-name-as-directory (file-truename folder))
                                         folders))))
                 collect file)))))

(defun contexture-symbol--grep (name files)
  "Return a list of an xref item for each line of FILES that defines NAME.
Another process reads the files.  Timers and other processes run
meanwhile, and quitting ends the search."
  (require 'xref)
  (require 'contexture-code)
  (let* ((unread "")
         (lines nil)
         (process (make-process
                   :name "contexture grep" :noquery t :connection-type 'pipe
                   :command (list "xargs" "-0" "grep" "-snHIF" "-D" "skip" "--null" "-e" name)
                   :filter (lambda (_ text)
                             (let ((parts (split-string (concat unread text) "\n")))
                               (setq unread (car (last parts))
                                     lines (nconc lines (butlast parts)))))
                   :sentinel #'ignore))
         (message-log-max nil))
    (contexture--message "Looking for %s in %s of the project (%s stops)" name
                         (contexture--count (length files) "file")
                         (substitute-command-keys "\\[keyboard-quit]"))
    (unwind-protect
        (progn
          (process-send-string process (mapconcat #'expand-file-name files "\0"))
          (process-send-eof process)
          (while (accept-process-output process))
          (cl-loop for line in lines
                   for item = (contexture-symbol--match name line)
                   when item collect item
                   ;; Let a key that quits take effect between two lines.
                   do (accept-process-output nil 0)))
      (delete-process process)
      (message nil))))

(defun contexture-symbol--match (name line)
  "Return an xref item if LINE, a line that grep printed, defines NAME, or nil."
  (pcase (split-string line "[\0]")
    (`(,file ,(rx (let number (+ digit)) ":" (let text (* nonl))))
     (when (contexture-defun--defines-p text name)
       (xref-make text (xref-make-file-location file (string-to-number number)
                                                (string-search name text)))))))

(provide 'contexture-sources)
;;; contexture-sources.el ends here
