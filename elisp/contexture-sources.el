;;; contexture-sources.el --- Add what Emacs has at hand  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Commands that add text from elsewhere than the buffer: the latest kill,
;; diagnostics of Flymake, differences from version control, the errors of
;; a compilation, marked files and buffers.  Also `contexture-add-dwim',
;; which adds what you most likely mean.
;;
;; Such an item may name a file that it is about; the server does not
;; compare its text with that file.

;;; Code:

(require 'contexture)
(eval-when-compile
  (require 'subr-x)
  ;; Some accessors of compile.el are macros; interpreted code needs them only
  ;; when it runs.
  (when (bound-and-true-p byte-compile-current-file)
    (require 'compile)))

(autoload 'contexture-tree--read-mode "contexture-tree")
(declare-function apply-on-rectangle "rect" (function start end &rest args))
(declare-function compilation--ensure-parse "compile" (limit))
(declare-function compilation-buffer-p "compile" (buffer))
(declare-function dired-get-marked-files "dired"
                  (&optional localp arg filter distinguish-one-marked error))
(declare-function extract-rectangle-line "rect" (startcol endcol lines))
(declare-function flymake-diagnostic-beg "flymake" t t)
(declare-function flymake-diagnostic-text "flymake" t t)
(declare-function flymake-diagnostic-type "flymake" t t)
(declare-function flymake-diagnostics "flymake" (&optional beg end))
(declare-function ibuffer-current-buffer "ibuffer" (&optional must-be-live))
(declare-function ibuffer-get-marked-buffers "ibuffer" ())
(declare-function vc-backend "vc-hooks" (file-or-list))
(declare-function vc-buffer-sync "vc-dispatcher" (&optional not-essential))
(declare-function vc-call-backend "vc-hooks" (backend function-name &rest args))
(declare-function vc-coding-system-for-diff "vc" (file))
(declare-function vc-responsible-backend "vc" (file &optional no-error))

(defvar compilation-skip-threshold)
(defvar flymake-mode)
(defvar vc-git-program)

(defun contexture-sources--params (type origin content metadata)
  "Return parameters that add CONTENT of TYPE, taken as ORIGIN says.
METADATA is a plist of further facts."
  (list :type type
        :content (substring-no-properties content)
        :metadata (append (list :origin origin) metadata (contexture--as-of))))

(defun contexture-sources--buffer-metadata (&rest keys)
  "Return the values of KEYS in this buffer's metadata, as a plist."
  (cl-loop for (key value) on (contexture--buffer-metadata) by #'cddr
           when (memq key keys) nconc (list key value)))

;;;; Rectangles

(defun contexture-sources--block-selection ()
  "Return (BEG END t) if a rectangle, or a block of Evil, is selected, or nil."
  (cond ((and (bound-and-true-p rectangle-mark-mode) (use-region-p))
         (list (region-beginning) (region-end) t))
        ((and (eq (bound-and-true-p evil-state) 'visual)
              (fboundp 'evil-visual-type) (fboundp 'evil-visual-range)
              (eq (funcall 'evil-visual-type) 'block))
         (pcase-let ((`(,beg ,end . ,_) (funcall 'evil-visual-range)))
           (list beg end t)))))

(defun contexture-sources--capture-rectangle (beg end)
  "Return parameters that add the rectangle with corners at BEG and END.
The metadata has its lines and columns, counted from 1, the last ones
included.  Padding of shorter lines is left out."
  (require 'rect)
  (let ((rows (list nil)) columns)
    (save-excursion
      (apply-on-rectangle (lambda (from to)
                            (setq columns (cons from to))
                            (extract-rectangle-line from to rows))
                          beg end))
    (let ((text (mapconcat (lambda (row) (string-trim-right row "[ \t]+"))
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

;;;; What is most likely meant

;;;###autoload
(defun contexture-add-dwim ()
  "Add what you most likely mean to this buffer's context.
That is the region if it is active; in Dired and Ibuffer, the marked
files or buffers, or the one at point; else the definition around point;
else the whole buffer."
  (interactive)
  (cond ((or (use-region-p) (contexture-sources--block-selection))
         (call-interactively #'contexture-add-region))
        ((derived-mode-p 'dired-mode) (contexture-sources--add-dired))
        ((derived-mode-p 'ibuffer-mode) (contexture-sources--add-ibuffer))
        ((contexture-defun-at-point) (contexture-add-defun))
        (t (contexture-add-buffer))))

(defun contexture-sources--add-dired ()
  "Add the marked files of this Dired buffer, or the one at point.
Ask once what to add of directories; the server walks them."
  (let ((files (or (ignore-errors (dired-get-marked-files))
                   (user-error "There is no file here")))
        (contexture-manager (contexture-current-manager)) ; ask once
        mode)
    (dolist (directory (cl-remove-if-not #'file-directory-p files))
      (setq mode (or mode (contexture-tree--read-mode)))
      (contexture-add-directory directory mode))
    (contexture-sources--add-all
     (mapcar #'contexture--file-call (cl-remove-if #'file-directory-p files))
     "file")))

(defun contexture-sources--add-ibuffer ()
  "Add the marked buffers of this Ibuffer, or the one at point."
  (let ((buffers (or (ibuffer-get-marked-buffers)
                     (ensure-list (ignore-errors (ibuffer-current-buffer t)))
                     (user-error "There is no buffer here"))))
    (contexture-sources--add-all
     (mapcar (lambda (buffer)
               (with-current-buffer buffer
                 (when (= (point-min) (point-max))
                   (contexture--user-error "Buffer %s is empty" (buffer-name)))
                 (cons 'add-item
                       (contexture--capture (point-min) (point-max) :buffer))))
             buffers)
     "buffer")))

(defun contexture-sources--add-all (calls noun)
  "Make CALLS, pairs (METHOD . PARAMS), and show one message about all.
NOUN names what each of them adds."
  (if (and calls (null (cdr calls)))
      (contexture--add (cdar calls) (caar calls))
    (let ((manager (contexture-current-manager)))
      (when calls
        (setq contexture--last-manager manager
              contexture--last-changed manager)
        (contexture-request-batch-async
         (cl-loop for (method . params) in calls
                  collect `(,method :manager ,manager ,@params :brief t))
         :success
         (lambda (outcomes)
           (contexture-sources--tell-all
            manager noun
            (reverse (cl-loop for outcome in outcomes
                              when (plist-get outcome :result) collect it))
            (cl-loop for outcome in outcomes
                     when (plist-get (plist-get outcome :error) :message)
                     collect it))))))))

(defun contexture-sources--tell-all (manager noun items refusals)
  "Say that ITEMS, the newest first, each a NOUN, were added to MANAGER.
REFUSALS are the error messages for items that were not added."
  (let ((evicted (cl-loop for item in items
                          sum (length (plist-get item :evicted))))
        (refused (if refusals
                     (format "; %d refused: %s" (length refusals) (car refusals))
                   "")))
    (if (null items)
        (contexture--message "Nothing added to %s%s" (contexture--label manager) refused)
      (let ((count (plist-get (car items) :count))
            (tokens (plist-get (car items) :total-tokens)))
        (contexture--note-totals manager count tokens
                                 (plist-get (car items) :version))
        (contexture--message "Added %s to %s (%s)%s%s"
                 (contexture--count (length items) noun)
                 (contexture--label manager)
                 (contexture--size count tokens)
                 (if (> evicted 0)
                     (format "; it is full, so the oldest %s left it"
                             (contexture--count evicted "item"))
                   "")
                 refused)))))

;;;; Kills

;;;###autoload
(defun contexture-add-kill (text)
  "Add TEXT, the latest kill, to this buffer's context.
With a prefix argument, choose one from the kill ring."
  (interactive
   (list (if (contexture--own-prefix)
             (progn (contexture-sources--check-kills)
                    (read-from-kill-ring "Add kill: "))
           (contexture-sources--check-kills))))
  (when (string-empty-p text)
    (user-error "The kill is empty"))
  (contexture--add (contexture-sources--params :text :kill text nil)))

(defun contexture-sources--check-kills ()
  "Return the latest kill, or signal an error if there is none."
  (condition-case nil
      (current-kill 0 t)
    (error (user-error "Kill ring is empty"))))

;;;; Diagnostics

;;;###autoload
(defun contexture-add-diagnostics (&optional all)
  "Add Flymake's diagnostics at point to this buffer's context.
With ALL, the prefix argument, add all of the buffer's diagnostics as one
item."
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
  "Return Flymake's diagnostics at point or on its line, or all if ALL."
  (cond (all (flymake-diagnostics))
        ((flymake-diagnostics (point)))
        (t (flymake-diagnostics (line-beginning-position) (line-end-position)))))

(defun contexture-sources--diagnostic-lines (diagnostics)
  "Return the lines of DIAGNOSTICS, sorted, as a plist."
  (when diagnostics
    (list :start-line (contexture-sources--diagnostic-line (car diagnostics))
          :end-line (contexture-sources--diagnostic-line
                     (car (last diagnostics))))))

(defun contexture-sources--diagnostic-line (diagnostic)
  "Return the line of DIAGNOSTIC, counted in the whole buffer."
  (line-number-at-pos (flymake-diagnostic-beg diagnostic) t))

(defun contexture-sources--diagnostic-text (diagnostic)
  "Return severity, line and message of DIAGNOSTIC, and the source line."
  (format "line %d: %s: %s\n    %s\n"
          (contexture-sources--diagnostic-line diagnostic)
          (contexture-sources--severity (flymake-diagnostic-type diagnostic))
          (flymake-diagnostic-text diagnostic)
          (save-excursion
            (goto-char (flymake-diagnostic-beg diagnostic))
            (string-trim (buffer-substring-no-properties
                          (line-beginning-position) (line-end-position))))))

(defun contexture-sources--severity (type)
  "Return the word for TYPE, the type of a diagnostic of any backend."
  (let ((name (contexture--name type)))
    (if (string-match "error\\|warning\\|note" name) (match-string 0 name) name)))

;;;; Differences

;;;###autoload
(defun contexture-add-diff (&optional whole)
  "Add this file's differences from its last commit to its buffer's context.
With WHOLE, the prefix argument, add those of the whole project.  The
version control program runs in the background."
  (interactive (list (contexture--own-prefix)))
  (require 'vc)
  (when (file-remote-p default-directory)
    (user-error "Contexture cannot add differences of files on other machines"))
  (pcase-let* ((`(,backend ,target . ,metadata)
                (if whole (contexture-sources--diff-of-project)
                  (contexture-sources--diff-of-file)))
               (manager (contexture-current-manager))
               (buffer (generate-new-buffer " *contexture diff*")))
    (when (buffer-file-name (contexture--base-buffer))
      (vc-buffer-sync t))
    (condition-case problem
        (progn
          (contexture-sources--start-diff backend target buffer)
          (contexture-sources--when-finished
           buffer (lambda ()
                    (contexture-sources--add-diff buffer manager metadata))))
      (error (kill-buffer buffer)
             (contexture--user-error "%s" (error-message-string problem))))))

(defun contexture-sources--start-diff (backend target buffer)
  "Write the differences of TARGET from its last commit into BUFFER.
BACKEND writes them, except for Git: `vc-git-diff' would wait for Git, so
this function starts Git itself."
  (let ((coding-system-for-read (vc-coding-system-for-diff target)))
    (if (eq backend 'Git)
        (make-process :name "contexture diff" :buffer buffer :noquery t
                      :connection-type 'pipe :sentinel #'ignore
                      :command (list vc-git-program "--no-pager" "diff"
                                     "--no-color" "--no-ext-diff" "HEAD" "--"
                                     target))
      (vc-call-backend backend 'diff (list target) nil nil buffer t))))

(defun contexture-sources--diff-of-file ()
  "Return (BACKEND FILE . METADATA) for the differences of this file."
  (let* ((file (or (buffer-file-name (contexture--base-buffer))
                   (user-error "This buffer visits no file; \
with a prefix argument, this adds the whole project")))
         (backend (or (vc-backend file)
                      (contexture--user-error "%s is not under version control"
                                  (abbreviate-file-name file)))))
    `(,backend ,(expand-file-name file)
               ,@(contexture-sources--buffer-metadata
                  :filename :project :buffer))))

(defun contexture-sources--diff-of-project ()
  "Return (BACKEND ROOT . METADATA) for the differences of the project."
  (let* ((backend (or (vc-responsible-backend default-directory t)
                      (contexture--user-error "%s is not under version control"
                                  (abbreviate-file-name default-directory))))
         (root (file-name-as-directory
                (expand-file-name
                 (vc-call-backend backend 'root default-directory)))))
    (list backend root :filename root)))

(defun contexture-sources--when-finished (buffer function)
  "Call FUNCTION when the process of BUFFER, if it has one, has ended.
A dead process may still have unread output; when its sentinel runs, all
output has arrived."
  (let ((process (get-buffer-process buffer)))
    (if (null process)
        (funcall function)
      (set-process-query-on-exit-flag process nil)
      (add-function :after (process-sentinel process)
                    (lambda (process _event)
                      (unless (process-live-p process)
                        (contexture--later function)))))))

(defun contexture-sources--add-diff (buffer manager metadata)
  "Add the differences in BUFFER to MANAGER, with METADATA, and kill BUFFER."
  (when (buffer-live-p buffer)
    (let* ((text (with-current-buffer buffer
                   (buffer-substring-no-properties (point-min) (point-max))))
           ;; Warnings may come first.
           (start (string-match "^\\(?:diff \\|Index: \\|--- \\|@@ \\)" text))
           (contexture-manager manager))
      (kill-buffer buffer)
      (cond (start
             (contexture--add
              (contexture-sources--params :text :diff (substring text start)
                                          `(,@metadata :language "diff"))))
            ((string-blank-p text)
             (contexture--message "%s has not changed since its last commit"
                      (contexture--place metadata)))
            (t (contexture--message "Nothing added; version control says: %s"
                        (string-trim text)))))))

;;;; Compilations

;;;###autoload
(defun contexture-add-compilation (&optional all)
  "Add the error at point of a compilation to this buffer's context.
This works in buffers of `compile', `grep' and similar commands.  With
ALL, the prefix argument, add all errors as one item."
  (interactive (list (contexture--own-prefix)))
  (require 'compile)
  (unless (compilation-buffer-p (current-buffer))
    (user-error "This is not a compilation buffer"))
  (save-restriction
    (widen)
    (compilation--ensure-parse (point-max))
    (if all
        (contexture-sources--add-errors)
      (contexture-sources--add-error))))

(defun contexture-sources--add-error ()
  "Add the error at point, with its file and line."
  (pcase-let* ((position (or (contexture-sources--error-position)
                             (user-error "There is no error here; \
with a prefix argument, this adds all errors")))
               (`(,file . ,line) (contexture-sources--error-place position)))
    (contexture--add
     (contexture-sources--params
      :error :compilation (contexture-sources--error-text position)
      (append (contexture--plist :filename file
                                 :start-line line :end-line line)
              (contexture-sources--buffer-metadata :project :buffer :mode)
              '(:language "text"))))))

(defun contexture-sources--add-errors ()
  "Add all errors of this buffer as one item."
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
      (append (contexture-sources--buffer-metadata :project :buffer :mode)
              '(:language "text"))))))

(defun contexture-sources--message-here ()
  "Return the compilation message that begins on this line, or nil.
A message below `compilation-skip-threshold' belongs to the one before."
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
  "Return the lines of the error that begins at POSITION.
They end before the next error or empty line.  The line above POSITION is
included if it is the headline of the error."
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
It is one if no line since the last empty line is an error; the matches
of `grep' have no headlines."
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
  "Return (FILE . LINE) of the error on the line of POSITION.
FILE is nil if there is no such file."
  (save-excursion
    (goto-char position)
    (pcase-let* ((loc (compilation--message->loc
                       (contexture-sources--message-here)))
                 (`(,name ,directory . ,_)
                  (compilation--file-struct->file-spec
                   (compilation--loc->file-struct loc)))
                 (file (and (stringp name) (expand-file-name name directory))))
      (cons (and file (file-exists-p file) file)
            (compilation--loc->line loc)))))

(provide 'contexture-sources)
;;; contexture-sources.el ends here
