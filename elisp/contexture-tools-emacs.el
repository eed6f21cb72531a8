;;; contexture-tools-emacs.el --- What models can read in Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Tools that only read: what is in buffers now, definitions, references
;; and documentation as Xref, ElDoc and Imenu know them, diagnostics, the
;; output of compilations, a search in the project.
;;
;; A model sees buffers that visit files in the project of its session,
;; and no others.  No file is opened for it: that could run code or ask
;; the user.

;;; Code:

(require 'epa-hook)
(require 'contexture-tools)
(eval-when-compile (require 'subr-x))

(declare-function compilation-buffer-p "compile" (buffer))
(declare-function flymake-diagnostic-beg "flymake" t t)
(declare-function flymake-diagnostic-text "flymake" t t)
(declare-function flymake-diagnostic-type "flymake" t t)
(declare-function flymake-diagnostics "flymake" (&optional beg end))
(declare-function flycheck-error-format-message-and-id "ext:flycheck" (err &optional include-id))
(declare-function flycheck-error-level "ext:flycheck" t t)
(declare-function flycheck-error-line "ext:flycheck" t t)
(declare-function xref-backend-definitions "xref" (backend identifier))
(declare-function xref-backend-identifier-at-point "xref" (backend))
(declare-function xref-backend-references "xref" (backend identifier))
(declare-function xref-find-backend "xref" ())
(declare-function xref-item-location "xref" t t)
(declare-function xref-item-summary "xref" t t)
(declare-function xref-location-group "xref" (location))
(declare-function xref-location-line "xref" (location))
(declare-function imenu--subalist-p "imenu" (item))
(declare-function help-split-fundoc "help" (docstring def &optional section))
(declare-function help-function-arglist "help" (def &optional preserve-names))
(defvar eldoc-documentation-functions)
(defvar flycheck-current-errors)
(defvar imenu-create-index-function)
(defvar imenu-extract-index-name-function)
(defvar imenu-generic-expression)
(defvar imenu-generic-skip-comments-and-strings)
(defvar imenu-prev-index-position-function)

(defconst contexture-tools-emacs--most-lines 200
  "Maximum number of lines of a list that a model is shown.")

(defconst contexture-tools-emacs--longest-line 300
  "Maximum number of characters of a line of a list.")

;;;; What a model may see

(defun contexture-tools-emacs--project ()
  "Return the folder of the session's project, or signal an error."
  (cond ((null contexture-tool-project)
         (error "This session has no project, so it can see nothing in Emacs"))
        ((file-remote-p contexture-tool-project)
         (error "The project is on another machine"))
        (contexture-tool-project)))

(defun contexture-tools-emacs--buffers ()
  "Return the buffers that visit files of the project, the last used first."
  ;; The true names of buffers are known: no file is looked at for them.
  (let ((project (file-name-as-directory
                  (file-truename (contexture-tools-emacs--project)))))
    (cl-loop for buffer in (buffer-list)
             for file = (buffer-local-value 'buffer-file-name buffer)
             for true = (buffer-local-value 'buffer-file-truename buffer)
             when (and file true (not (file-remote-p file))
                       (not (string-match-p epa-file-name-regexp file))
                       (string-prefix-p project (expand-file-name true)))
             collect buffer)))

(defun contexture-tools-emacs--path (file)
  "Return the full name of FILE, or signal an error if it is on another machine.
That does not reach the machine."
  (when (file-remote-p file)
    (error "%s is on another machine" file))
  (expand-file-name file (contexture-tools-emacs--project)))

(defun contexture-tools-emacs--buffer (file)
  "Return the buffer that visits FILE, or signal an error."
  (let ((name (contexture-tools-emacs--path file)))
    (or (cl-find-if (lambda (buffer)
                      (with-current-buffer buffer
                        (or (equal name buffer-file-name)
                            (and buffer-file-truename
                                 (equal name (expand-file-name buffer-file-truename))))))
                    (contexture-tools-emacs--buffers))
        (error "No buffer of this project visits %s; list_buffers names those that do"
               file))))

(defun contexture-tools-emacs--name (file)
  "Return FILE, relative to the project if it is there."
  (let ((name (file-relative-name file (contexture-tools-emacs--project))))
    (if (string-prefix-p ".." name) file name)))

(defun contexture-tools-emacs--list (lines nothing)
  "Return LINES as a text, without those that are too many; NOTHING if none."
  (let ((more (- (length lines) contexture-tools-emacs--most-lines)))
    (if (null lines) nothing
      (concat (mapconcat (lambda (line)
                           (truncate-string-to-width
                            line contexture-tools-emacs--longest-line nil nil t))
                         (seq-take lines contexture-tools-emacs--most-lines) "\n")
              (if (> more 0) (format "\n... and %d more" more) "")))))

(defmacro contexture-tools-emacs--in (buffer &rest body)
  "Run BODY in the whole of BUFFER; leave point and narrowing as they are."
  (declare (indent 1) (debug t))
  `(with-current-buffer ,buffer
     (save-excursion
       (save-restriction
         (widen)
         ,@body))))

;;;; Buffers

(defun contexture-tools-emacs--list-buffers ()
  "List the files of the project that are open in Emacs, the last used first."
  (contexture-tools-emacs--list
   (mapcar (lambda (buffer)
             (with-current-buffer buffer
               (format "%s (%s%s)" (contexture-tools-emacs--name buffer-file-name) major-mode
                       (if (buffer-modified-p) ", not saved" ""))))
           (contexture-tools-emacs--buffers))
   "no file of the project is open"))

(defun contexture-tools-emacs--read-buffer (file first last)
  "Return the lines FIRST to LAST of the buffer that visits FILE."
  (contexture-tools-emacs--in (contexture-tools-emacs--buffer file)
    (let* ((lines (line-number-at-pos (point-max)))
           (first (max 1 (or first 1)))
           (last (min lines (or last lines))))
      (goto-char (point-min))
      (forward-line (1- first))
      (format "%s, lines %d to %d of %d%s:\n%s" file first last lines
              (if (buffer-modified-p) ", not saved" "")
              (buffer-substring-no-properties
               (point) (max (point) (line-beginning-position (+ 2 (- last first)))))))))

;;;; What Xref, Imenu and Lisp know

(defun contexture-tools-emacs--goto (symbol line)
  "Go to SYMBOL on LINE, or to its first place in the buffer if LINE is nil.
Return non-nil if it is there."
  (goto-char (point-min))
  (when line (forward-line (1- line)))
  (when (re-search-forward (concat "\\_<" (regexp-quote symbol) "\\_>")
                           (and line (line-end-position)) t)
    (goto-char (match-beginning 0))))

(defun contexture-tools-emacs--xrefs (finder symbol file line)
  "Return what FINDER, of Xref, finds for SYMBOL as it is used in FILE on LINE."
  (require 'xref)
  (contexture-tools-emacs--in (contexture-tools-emacs--buffer file)
    (let* ((foundp (contexture-tools-emacs--goto symbol line))
           (backend (xref-find-backend)))
      (when (memq backend '(nil etags))
        (error "Emacs knows no definitions in %s: it has no language server there" file))
      (contexture-tools-emacs--list
       (mapcar #'contexture-tools-emacs--xref
               (funcall finder backend
                        (or (and foundp (xref-backend-identifier-at-point backend)) symbol)))
       (format "nothing is known of %s" symbol)))))

(defun contexture-tools-emacs--xref (item)
  "Return ITEM, of Xref, as a line."
  (let* ((location (xref-item-location item))
         (line (xref-location-line location)))
    (format "%s%s: %s" (contexture-tools-emacs--name (xref-location-group location))
            (if line (format ":%d" line) "")
            (string-trim (xref-item-summary item)))))

(defun contexture-tools-emacs--definitions (symbol file line)
  "Return where SYMBOL, as it is used in FILE on LINE, is defined."
  (contexture-tools-emacs--xrefs #'xref-backend-definitions symbol file line))

(defun contexture-tools-emacs--references (symbol file line)
  "Return where SYMBOL, as it is used in FILE on LINE, is used."
  (contexture-tools-emacs--xrefs #'xref-backend-references symbol file line))

(defun contexture-tools-emacs--outline (file)
  "Return the definitions in the buffer that visits FILE, by Imenu."
  (require 'imenu)
  (contexture-tools-emacs--in (contexture-tools-emacs--buffer file)
    ;; Imenu goes back from the end of the buffer, where it is slow to tell comments.
    (let* ((skipp (and imenu-generic-skip-comments-and-strings
                       imenu-generic-expression
                       (not (and imenu-prev-index-position-function
                                 imenu-extract-index-name-function))
                       (eq imenu-create-index-function
                           'imenu-default-create-index-function)))
           (imenu-generic-skip-comments-and-strings nil)
           (entries (contexture-tools-emacs--entries
                     (funcall imenu-create-index-function) "")))
      (when skipp
        (dolist (entry (sort (copy-sequence entries) #'car-less-than-car))
          (when (nth 8 (syntax-ppss (car entry)))
            (setq entries (delq entry entries)))))
      (contexture-tools-emacs--list
       (mapcar (lambda (entry)
                 (format "%d: %s" (line-number-at-pos (car entry)) (cdr entry)))
               entries)
       "Imenu knows no definitions here"))))

(defun contexture-tools-emacs--entries (index prefix)
  "Return the entries of INDEX, of Imenu, each (PLACE . NAME) with PREFIX."
  (cl-loop for item in index
           for name = (concat prefix (car item))
           for place = (if (overlayp (cdr-safe item)) (overlay-start (cdr item))
                         (if (consp (cdr-safe item)) (cadr item) (cdr-safe item)))
           if (imenu--subalist-p item)
           append (contexture-tools-emacs--entries (cdr item) (concat name "/"))
           else if (number-or-marker-p place)
           collect (cons place name)))

(defun contexture-tools-emacs--describe (name)
  "Return what Emacs says of the function and variable of Emacs Lisp with NAME.
Values are left out: they can be secrets."
  (let ((symbol (intern-soft name)))
    (unless (and symbol (or (fboundp symbol) (boundp symbol) (facep symbol)))
      (error "There is no function, variable or face %s in this Emacs" name))
    (string-join
     (delq nil
           (list (and (fboundp symbol) (contexture-tools-emacs--function symbol))
                 (and (boundp symbol)
                      (format "Variable %s:\n%s" symbol
                              (or (documentation-property symbol 'variable-documentation)
                                  "not documented")))
                 (and (facep symbol)
                      (format "Face %s:\n%s" symbol
                              (or (documentation-property symbol 'face-documentation)
                                  "not documented")))))
     "\n\n")))

(defun contexture-tools-emacs--function (symbol)
  "Return what Emacs says of the function SYMBOL."
  (require 'help)
  (let* ((text (documentation symbol))
         (split (help-split-fundoc text symbol)))
    (format "%s %s:\n%s"
            (cond ((special-form-p symbol) "Special form")
                  ((macrop symbol) "Macro")
                  ((commandp symbol) "Command")
                  (t "Function"))
            (or (car split) (cons symbol (help-function-arglist symbol t)))
            (or (cdr split) text "not documented"))))

(defun contexture-tools-emacs--documentation (done symbol file line)
  "Call DONE with what ElDoc says of SYMBOL, as it is used in FILE on LINE."
  (require 'eldoc)
  (let (texts waiting over)
    (cl-flet ((tell () (unless over
                         (setq over t)
                         (funcall done (string-join (nreverse texts) "\n")))))
      (contexture-tools-emacs--in (contexture-tools-emacs--buffer file)
        (unless (contexture-tools-emacs--goto symbol line)
          (error "%s is not there" symbol))
        (run-hook-wrapped
         'eldoc-documentation-functions
         (lambda (function)
           (let* ((told nil)
                  (answer (funcall function
                                   (lambda (text &rest plist)
                                     (setq told t)
                                     (when text
                                       (push (contexture-tools-emacs--said text plist)
                                             texts)
                                       (when waiting (tell)))))))
             (cond ((stringp answer) (push answer texts))
                   ((and answer (not told)) (setq waiting t))))
           nil)))
      (cond (texts (tell))
            ((not waiting) (funcall done (format "ElDoc says nothing of %s" symbol)))))
    #'ignore))

(defun contexture-tools-emacs--said (text plist)
  "Return TEXT that ElDoc was told, with the name that PLIST has."
  (let ((thing (plist-get plist :thing)))
    (if thing (format "%s: %s" thing text) (format "%s" text))))

;;;; Diagnostics and compilations

(defun contexture-tools-emacs--diagnostics (file)
  "Return the diagnostics of FILE, or of all open files if that is nil."
  (contexture-tools-emacs--list
   (cl-loop for buffer in (if file (list (contexture-tools-emacs--buffer file))
                            (contexture-tools-emacs--buffers))
            append (contexture-tools-emacs--in buffer
                     (append (and (bound-and-true-p flymake-mode)
                                  (mapcar #'contexture-tools-emacs--flymake
                                          (flymake-diagnostics)))
                             (and (bound-and-true-p flycheck-mode)
                                  (mapcar #'contexture-tools-emacs--flycheck
                                          flycheck-current-errors)))))
   "Flymake and Flycheck report nothing, or are off"))

(defun contexture-tools-emacs--diagnostic (line kind text)
  "Return a diagnostic of this buffer as a line: its LINE, its KIND and TEXT."
  (format "%s:%d: %s: %s" (contexture-tools-emacs--name buffer-file-name) line
          (string-remove-prefix ":" (format "%s" kind))
          (replace-regexp-in-string "\n" " " text)))

(defun contexture-tools-emacs--flymake (diagnostic)
  "Return DIAGNOSTIC of Flymake as a line."
  (contexture-tools-emacs--diagnostic
   (line-number-at-pos (flymake-diagnostic-beg diagnostic))
   (flymake-diagnostic-type diagnostic) (flymake-diagnostic-text diagnostic)))

(defun contexture-tools-emacs--flycheck (diagnostic)
  "Return DIAGNOSTIC of Flycheck as a line."
  (contexture-tools-emacs--diagnostic
   (flycheck-error-line diagnostic) (flycheck-error-level diagnostic)
   (flycheck-error-format-message-and-id diagnostic)))

(defconst contexture-tools-emacs--most-output 20000
  "Maximum number of characters of the output of a compilation.")

(defun contexture-tools-emacs--compilation ()
  "Return the end of the output of the project's last compilation."
  (require 'compile)
  (let* ((project (contexture-tools-emacs--project))
         (buffer (cl-find-if
                  (lambda (buffer)
                    (let ((folder (buffer-local-value 'default-directory buffer)))
                      (and (compilation-buffer-p buffer)
                           (not (file-remote-p folder))
                           (file-in-directory-p folder project))))
                  (buffer-list))))
    (unless buffer
      (error "Nothing was compiled in this project"))
    (contexture-tools-emacs--in buffer
      (format "%s%s:\n%s" (buffer-name)
              (if (get-buffer-process buffer) ", still running" "")
              (buffer-substring-no-properties
               (max (point-min) (- (point-max) contexture-tools-emacs--most-output))
               (point-max))))))

;;;; Searching

(defun contexture-tools-emacs--search (done regexp)
  "Call DONE with the lines of the project's files that REGEXP matches.
Return a function that ends the search."
  (let* ((default-directory (contexture-tools-emacs--project))
         (output "")
         (process
          (make-process
           :name "contexture-search" :connection-type 'pipe :noquery t
           :command (append (if (locate-dominating-file default-directory ".git")
                                '("git" "--no-pager" "grep" "--untracked" "--no-color")
                              '("grep" "-r"))
                            (list "-nIE" "-e" regexp "--" "."))
           :filter (lambda (process text)
                     (setq output (concat output text))
                     (when (> (length output) contexture-tools--longest-result)
                       (delete-process process)))
           :sentinel (lambda (process _)
                       (unless (process-live-p process)
                         (contexture-tools-emacs--searched
                          done process output))))))
    (lambda ()
      (set-process-sentinel process #'ignore)
      (delete-process process))))

(defun contexture-tools-emacs--searched (done process output)
  "Call DONE with OUTPUT, that of PROCESS, a search."
  (if (and (eq (process-status process) 'exit) (> (process-exit-status process) 1))
      (funcall done nil (string-trim output))
    (funcall done (contexture-tools-emacs--list (split-string output "\n" t)
                                                "nothing matches"))))

;;;; The tools

(defconst contexture-tools-emacs--file
  '(file "File that is open in Emacs, relative to the project")
  "The argument that names a file.")

(defconst contexture-tools-emacs--place
  `((symbol "Name of the symbol")
    ,contexture-tools-emacs--file
    (line "Line on which the symbol is used" :type integer :optional t))
  "The arguments that name a use of a symbol.")

(pcase-dolist
    (`(,name ,function ,arguments ,description . ,more)
     `(("list_buffers" contexture-tools-emacs--list-buffers nil
        "Lists the files of the project that are open in the user's editor, the last used first.")
       ("read_buffer" contexture-tools-emacs--read-buffer
        (,contexture-tools-emacs--file
         (first "First line" :type integer :optional t)
         (last "Last line" :type integer :optional t))
        "Reads an open file as it is in the editor now, with changes that are not saved.")
       ("find_definitions" contexture-tools-emacs--definitions ,contexture-tools-emacs--place
        "Finds where a symbol is defined.")
       ("find_references" contexture-tools-emacs--references ,contexture-tools-emacs--place
        "Finds where a symbol is used.")
       ("list_definitions" contexture-tools-emacs--outline (,contexture-tools-emacs--file)
        "Lists the definitions in an open file, with their lines.")
       ("find_documentation" contexture-tools-emacs--documentation
        ,contexture-tools-emacs--place
        "Finds the signature and the documentation of a symbol where it is used." :async t)
       ("describe_elisp" contexture-tools-emacs--describe
        ((name "Name of the function, variable or face"))
        "Documents a function, a variable or a face of Emacs Lisp.")
       ("list_diagnostics" contexture-tools-emacs--diagnostics
        ((file "File that is open in Emacs; all of them if left out" :optional t))
        "Lists the errors and warnings that the editor shows.")
       ("compilation_output" contexture-tools-emacs--compilation nil
        "Reads the end of the output of the project's last compilation or test run.")
       ("search_project" contexture-tools-emacs--search
        ((regexp "Extended regular expression, as for grep"))
        "Searches the saved files of the project." :async t)))
  (apply #'contexture-define-tool name function arguments :reads
         :description description more))

(provide 'contexture-tools-emacs)
;;; contexture-tools-emacs.el ends here
