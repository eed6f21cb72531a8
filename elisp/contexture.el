;;; contexture.el --- Mark what a language model should see  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;; This program is free software: you can redistribute it and/or modify
;; it under the terms of the GNU General Public License as published by
;; the Free Software Foundation, either version 3 of the License, or
;; (at your option) any later version.
;;
;; This program is distributed in the hope that it will be useful, but
;; WITHOUT ANY WARRANTY; without even the implied warranty of
;; MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU
;; General Public License for more details.
;;
;; You should have received a copy of the GNU General Public License
;; along with this program.  If not, see <https://www.gnu.org/licenses/>.

;;; Commentary:

;; Contexture keeps what a language model needs to see: the regions,
;; definitions, buffers, files and symbols that you mark.  A small server
;; stores them for each project and renders them as Markdown.  They are
;; still there next week.
;;
;; Bind the commands to a prefix of your own and start marking:
;;
;;     (global-set-key (kbd "C-c x") 'contexture-command-map)
;;
;;     a  contexture-add-dwim         l  contexture-list
;;     r  contexture-add-region       p  contexture-preview
;;     d  contexture-add-defun        w  contexture-copy
;;     b  contexture-add-buffer       i  contexture-insert
;;     f  contexture-add-file         u  contexture-undo
;;     s  contexture-add-symbol       c  contexture-clear
;;     t  contexture-add-directory    x  contexture-remove
;;     P  contexture-add-project      q  contexture-cancel
;;     k  contexture-add-kill         S  contexture-save-set
;;     e  contexture-add-diagnostics  L  contexture-load-set
;;     v  contexture-add-diff         D  contexture-drop-set
;;     o  contexture-add-compilation  m  contexture-switch
;;     g  contexture-refresh          C  contexture-set-capacity
;;     U  contexture-redo              Z  contexture-freeze
;;     n  the commands for sessions, which are conversations
;;     z  the commands for a Lisp that SLIME or SLY is connected to
;;     R  contexture-repl             E  contexture-explain-code
;;     ?  contexture-menu, which shows all of this
;;
;; Only these commands add something.  Each says what it added, where to,
;; and the cost in tokens.  The text comes from the buffer, so it includes
;; unsaved edits.  `contexture-scope' says where it goes: by default to the
;; project's context.  A buffer sends the items of that context, those of
;; its file alone, and those for everywhere.  Under narrowing, only the
;; visible text is taken, with its line numbers in the whole buffer.

;;; Code:

(require 'cl-lib)
(require 'contexture-rpc)
(require 'contexture-keys)
(require 'contexture-scope)

(autoload 'contexture-live--added "contexture-live-place")
(autoload 'contexture-live--captured "contexture-live-place")
(autoload 'contexture-live--connected "contexture-live-place")
(autoload 'contexture-live--held-p "contexture-live")
(eval-when-compile (require 'subr-x))


(defgroup contexture nil
  "Choose and keep what a language model sees."
  :group 'tools
  :group 'convenience
  :prefix "contexture-"
  :link '(url-link "https://github.com/contexture/contexture"))

(defvar contexture--last-manager nil
  "Name of the context to which something was added last.")

(defvar contexture--last-changed nil
  "Name of the context that a command of this Emacs changed last.")

(defvar contexture--totals (make-hash-table :test #'equal)
  "Hash table from a context's name to its size, as last reported.
A size is (ITEMS TOKENS VERSION); VERSION is that of the context.")

(defun contexture--size (items tokens)
  "Return a phrase for the size of a context of ITEMS with TOKENS."
  (format "%s, %s" (contexture--count (or items 0) "item")
          (contexture--count (or tokens 0) "token")))

;;;; What to send

(defun contexture--plist (&rest plist)
  "Return PLIST without the keys whose value is nil."
  (cl-loop for (key value) on plist by #'cddr
           when value nconc (list key value)))

(defun contexture--capture (beg end origin &rest metadata)
  "Return parameters that add the text from BEG to END of this buffer.
ORIGIN, a keyword, says how it was chosen; METADATA is a plist of further
facts."
  (when (string-prefix-p "*contexture: " (buffer-name))
    (user-error "This buffer only shows context; mark text in its own buffer"))
  (when (minibufferp)
    (user-error "Leave the minibuffer first; its text cannot be added"))
  (let ((text (buffer-substring-no-properties beg end))
        (live (and (buffer-file-name (contexture--base-buffer))
                   (not (plist-get metadata :start-column)))))
    (when live (contexture-live--captured text beg end))
    `(:type ,(cond ((eq origin :file) :file)
                   ((derived-mode-p 'prog-mode) :code)
                   (t :text))
      :content ,text
      :metadata (,@(contexture--buffer-metadata)
                 ,@(unless (contexture--whole-p beg end origin)
                     (contexture--lines beg end))
                 :origin ,origin
                 ,@(and (contexture--partial-p beg end) '(:partial t))
                 ,@(apply #'contexture--plist
                          :package (contexture--lisp-package beg) metadata)
                 ,@(cond (live (and (contexture-live--held-p) '(:unsaved t)))
                         ;; A rectangle, which is no text to follow.
                         ((plist-get metadata :start-column) (contexture--as-of))))
      ,@(and live '(:live t)))))

(defun contexture--as-of ()
  "Return the metadata of a text that does not follow its source, a plist."
  (list :as-of (truncate (float-time))))

(defun contexture--buffer-metadata ()
  "Return the metadata of any text in this buffer, as a plist."
  (let* ((base (contexture--base-buffer))
         (file (buffer-file-name base))
         (mode (symbol-name major-mode)))
    (contexture--plist
     :filename (and file (expand-file-name file))
     :project (contexture--project-root)
     :buffer (buffer-name base)
     :mode mode
     :language (and (not (eq major-mode 'fundamental-mode)) mode)
     :modified (and file (buffer-modified-p base)))))

(defun contexture--lines (beg end)
  "Return the lines from BEG to END as a plist, counted in the whole buffer.
An END at the start of a line does not count that line."
  (list :start-line (line-number-at-pos beg t)
        :end-line (line-number-at-pos
                   (if (and (> end beg) (eq (char-before end) ?\n)) (1- end) end)
                   t)))

(defun contexture--whole-p (beg end origin)
  "Return non-nil if BEG to END, taken as ORIGIN says, is a whole buffer.
The item then records no lines, and is refreshed as a whole."
  (and (memq origin '(:file :buffer))
       (save-restriction
         (widen)
         (and (= beg (point-min)) (= end (point-max))))))

(defun contexture--partial-p (beg end)
  "Return non-nil if the text from BEG to END is not whole lines.
The server then also looks for the text within lines."
  (save-excursion
    (save-restriction
      (widen)
      (not (and (progn (goto-char beg) (bolp))
                (progn (goto-char end) (or (bolp) (eolp))))))))

(defun contexture--lisp-package (position)
  "Return the name of the Common Lisp package in force at POSITION."
  (when (derived-mode-p 'lisp-mode)
    (save-excursion
      (goto-char position)
      (save-match-data
        (when (re-search-backward
               "^(\\(?:[a-z-]+:+\\)?in-package[ \t\n]+[#:\"]*\\([^])\" \t\n]+\\)" nil t)
          (match-string-no-properties 1))))))

(defun contexture--description (metadata)
  "Return a phrase for the kind of a text with METADATA."
  (concat (pcase (plist-get metadata :origin)
            (:diff "the diff of ")
            (:diagnostic "the diagnostics of ")
            (:repl "the interaction in ")
            (:inspector "what is in ")
            (:debugger (if (plist-get metadata :start-line) "the error at "
                         "the error of "))
            (:compilation (contexture--compilation-phrase metadata)))
          (contexture--named-source metadata)))

(defun contexture--compilation-phrase (metadata)
  "Return the words before the source of METADATA, of a compilation.
Lines of a search are matches, not errors."
  (let ((match (equal (plist-get metadata :mode) "grep-mode")))
    (if (plist-get metadata :start-line)
        (if match "the match at " "the error at ")
      (if match "the matches of " "the errors of "))))

(defun contexture--named-source (metadata)
  "Return the source of a text with METADATA.
A symbol that was added by name is shown by that name."
  (let ((symbol (plist-get metadata :symbol))
        (source (contexture--source metadata)))
    (if (and symbol (eq (plist-get metadata :origin) :symbol)
             (not (equal symbol source)))
        (contexture--format "%s (%s)" symbol source)
      source)))

(defun contexture--source (metadata)
  "Return the source of a text with METADATA, a plist."
  (let ((place (contexture--place metadata))
        (start (plist-get metadata :start-line))
        (end (plist-get metadata :end-line)))
    (cond ((null start) place)
          ((plist-get metadata :start-column)
           (format "%s:%d-%d columns %d-%d" place start end
                   (plist-get metadata :start-column)
                   (plist-get metadata :end-column)))
          ((or (null end) (eql start end)) (format "%s:%d" place start))
          (t (format "%s:%d-%d" place start end)))))

(defun contexture--place (metadata)
  "Return the file, or else the buffer, in METADATA, as text to show."
  (contexture--visible
   (if-let* ((file (plist-get metadata :filename)))
       (contexture--short-name file (plist-get metadata :project))
     (or (plist-get metadata :buffer) (plist-get metadata :symbol)
         (if (eq (plist-get metadata :origin) :kill) "killed text" "text")))))

(defun contexture--name (name)
  "Return NAME, a keyword, string or nil from the server, as text."
  (if name (string-trim-left (format "%s" name) ":") ""))

(defun contexture--short-name (file project)
  "Return FILE relative to the root PROJECT if it is inside, else abbreviated."
  (let ((root (and project (file-name-as-directory project))))
    (if (and root (string-prefix-p root file))
        (substring file (length root))
      (abbreviate-file-name file))))

(defun contexture--item-state (state metadata timestamp)
  "Return the word for STATE of the item with METADATA, added at TIMESTAMP.
Text that was never saved cannot match its file, and the server cannot
look at files on other machines."
  (cond ((contexture--item-remote-p metadata) "remote")
        ;; The server also reports stale for a file that was written just before.
        ((if (plist-get metadata :unsaved) ; a live item
             (and (eq state :fresh) (plist-get metadata :modified))
           (and (memq state '(:fresh :stale))
                (contexture--item-unsaved-p metadata timestamp)))
         "unsaved")
        (t (contexture--name state))))

(defun contexture--item-unsaved-p (metadata timestamp)
  "Return non-nil if the item with METADATA is text that was never saved.
It was unsaved when it was taken, at TIMESTAMP, and the file has not been
written since."
  (and (plist-get metadata :modified)
       (let ((attributes (file-attributes (plist-get metadata :filename))))
         (not (and attributes
                   (time-less-p (1+ timestamp) ; it is in whole seconds
                                (file-attribute-modification-time attributes)))))))

(defun contexture--item-remote-p (metadata)
  "Return non-nil if METADATA names a file on another machine."
  (when-let* ((file (plist-get metadata :filename)))
    (file-remote-p file)))

;;;; Adding

(defun contexture--add (params &optional method then)
  "Call METHOD with PARAMS to add something, and tell the user.
METHOD is `add-item' by default.  THEN is called instead of telling, with
the name of the context and the item."
  (let ((command this-command)
        (prefix current-prefix-arg))
    (contexture--with-layers
     (lambda ()
       (let ((manager (let ((this-command command)
                            (current-prefix-arg prefix))
                        (contexture-current-manager)))
             replaced)
         (setq contexture--last-manager manager
               contexture--last-changed manager)
         (contexture--request-patiently
          (or method 'add-item)
          `(:manager ,manager ,@params :brief t)
          :success (lambda (item)
                     (contexture-live--added manager item (plist-get params :content))
                     (if then (funcall then manager item)
                       (contexture--tell-added manager item replaced)))
          :error (apply-partially #'contexture--tell-refused manager))
         (setq replaced contexture--last-replaced))))))

(defun contexture--tell-added (manager item replaced)
  "Say that ITEM was added to MANAGER, with REPLACED characters lost."
  (contexture--note-totals manager (plist-get item :count)
                           (plist-get item :total-tokens)
                           (plist-get item :version))
  (contexture--message "Added %s to %s (%s)%s%s%s"
           (contexture--description (plist-get item :metadata))
           (contexture--label manager)
           (contexture--size (plist-get item :count)
                             (plist-get item :total-tokens))
           (contexture--repeat-text item)
           (if-let* ((evicted (plist-get item :evicted)))
               (format "; it is full, so the oldest %s left it"
                       (contexture--count (length evicted) "item"))
             "")
           (if (> replaced 0)
               (concat "; " (contexture--replaced-text replaced))
             "")))

(defun contexture--repeat-text (item)
  "Return a phrase for what of the added ITEM was there already, or \"\"."
  (let ((absorbed (length (plist-get item :absorbed)))
        (covers (length (plist-get item :covers))))
    (concat
     (pcase (plist-get item :repeat)
       (:same "; it was there already, and comes last now")
       (:extended
        (if (> absorbed 0)
            (format "; it joins %d items that were there" (1+ absorbed))
          "; it extends an item that was there")))
     (and (plist-get item :covered-by)
          "; all of its file is there too, and is sent once")
     (and (> covers 0)
          (contexture--format "; %s of the file %s sent as a part of it"
                              (contexture--count covers "item")
                              (if (= covers 1) "is" "are"))))))

(defun contexture--tell-refused (manager problem)
  "Say that nothing was added to MANAGER because of PROBLEM."
  (contexture--message "Nothing added to %s: %s" (contexture--label manager)
           (contexture--error-text problem)))

(defun contexture--note-totals (manager items tokens version)
  "Record that MANAGER holds ITEMS with TOKENS, both numbers, at VERSION.
Answers and notifications arrive in any order: an earlier VERSION than
the one recorded changes nothing."
  (unless (< (or version 0)
             (or (nth 2 (gethash manager contexture--totals)) 0))
    (puthash manager (list items tokens version) contexture--totals)
    (force-mode-line-update t)))

;;;###autoload
(defun contexture-add-region (beg end &optional rectangle)
  "Add the text between BEG and END to this buffer's context.
Interactively, that is the region.  With RECTANGLE non-nil, as when
`rectangle-mark-mode' is on, add the text of the rectangle with these
corners."
  (interactive
   (cond ((contexture-sources--block-selection))
         ((or (use-region-p) (and (mark t) (not transient-mark-mode)))
          (list (region-beginning) (region-end)))
         (t (user-error "Mark a region first"))))
  (when (= beg end)
    (user-error "The region is empty"))
  (contexture--add (if rectangle (contexture-sources--capture-rectangle beg end)
                     (contexture--capture beg end :region)))
  (setq deactivate-mark t))

;;;###autoload
(defun contexture-add-buffer ()
  "Add the text of this buffer to its context.
Unsaved edits are included; under narrowing, hidden text is not."
  (interactive)
  (when (= (point-min) (point-max))
    (user-error "The buffer is empty"))
  (contexture--add (contexture--capture (point-min) (point-max) :buffer)))

;;;###autoload
(defun contexture-add-defun ()
  "Add the definition around point to this buffer's context.
Its decorators, attributes and documentation comment belong to it.  In
Org and Markdown, it is the source block or the section around point."
  (interactive)
  (let ((definition (or (contexture-defun-at-point)
                        (contexture--user-error "There is no definition around point%s"
                                    (if (derived-mode-p 'prog-mode) ""
                                      " that this major mode knows")))))
    (contexture--add
     (contexture--capture (plist-get definition :beg) (plist-get definition :end)
                          :defun
                          :symbol (plist-get definition :name)
                          :symbol-kind (plist-get definition :kind)))))

(defun contexture--defun-bounds ()
  "Return the bounds of the definition around point as a pair, or nil."
  (when-let* ((definition (contexture-defun-at-point)))
    (cons (plist-get definition :beg) (plist-get definition :end))))

;;;###autoload
(defun contexture-add-file (file &optional start end)
  "Add FILE, or its lines START to END, to this buffer's context.
The server reads it, so its size does not matter to Emacs.  If a buffer
has unsaved edits of FILE, the buffer's text is added instead."
  (interactive
   (list (read-file-name "Add file: " nil
                         (buffer-file-name (contexture--base-buffer)) t)))
  (let ((call (contexture--file-call file start end)))
    (contexture--add (cdr call) (car call))))

(defun contexture--file-call (file &optional start end)
  "Return the call, (METHOD . PARAMS), that adds lines START to END of FILE."
  (let* ((file (expand-file-name file))
         (buffer (find-buffer-visiting file)))
    (cond ((file-directory-p file)
           (contexture--user-error "%s is a directory" (abbreviate-file-name file)))
          ((and buffer (buffer-modified-p buffer))
           (cons 'add-item (contexture--capture-file buffer start end)))
          ((file-remote-p file)
           (cons 'add-item (contexture--capture-remote file start end)))
          (t
           `(add-file
             ,@(contexture--plist :path file :start-line start :end-line end :live t)
             ,@(when-let* ((root (let ((default-directory
                                        (file-name-directory file)))
                                   (contexture--project-root))))
                 (list :metadata (list :project root))))))))

(defun contexture--capture-file (buffer start end)
  "Return parameters that add lines START to END of BUFFER as its file."
  (with-current-buffer buffer
    (save-excursion
      (save-restriction
        (widen)
        (let ((beg (if start (contexture--line-position start) (point-min)))
              (end (if end (contexture--line-position (1+ end)) (point-max))))
          (contexture--capture beg end :file))))))

(defun contexture--line-position (line)
  "Return the position at which LINE, counted from 1, begins."
  (goto-char (point-min))
  (forward-line (1- line))
  (point))

(defun contexture--capture-remote (file start end)
  "Return parameters that add lines START to END of FILE, read by Emacs.
This is for files on other machines, which the server cannot read."
  (with-temp-buffer
    (insert-file-contents file)
    (let ((params (contexture--capture-file (current-buffer) start end)))
      (plist-put params :metadata
                 (append (contexture--plist
                          :filename file
                          :language (contexture--file-mode file))
                         (contexture--as-of)
                         (cl-loop for (key value) on (plist-get params :metadata)
                                  by #'cddr
                                  when (memq key '(:start-line :end-line :origin))
                                  nconc (list key value)))))))

(defun contexture--file-mode (file)
  "Return the name of the major mode for FILE, or nil."
  (when-let* ((mode (assoc-default (file-local-name file) auto-mode-alist
                                   #'string-match)))
    (and (symbolp mode) (symbol-name mode))))

;;;; Using

(defun contexture--ask (method params)
  "Return the result of METHOD with PARAMS while the user waits.
Signal errors as `user-error', since they are not bugs."
  (condition-case problem
      (contexture-request method params)
    (contexture-error
     (contexture--user-error "Contexture: %s" (contexture--problem-text problem)))))

(defun contexture--read-manager (&optional ask)
  "Return a context that is not empty: a name, or a list of layers.
That is this buffer's; if it is empty, or if ASK is non-nil, the user
chooses one."
  (let* ((own (contexture-current-context))
         (all (cl-remove-if (lambda (entry) (eql 0 (plist-get entry :count)))
                            (contexture--note-labels
                             (contexture--ask 'list-managers nil))))
         (names (mapcar (lambda (entry) (plist-get entry :manager)) all)))
    (cond ((null names)
           (user-error "All contexts are empty; add something first"))
          ((and (not ask)
                (cl-intersection (contexture--managers own) names :test #'equal))
           own)
          (t (contexture--choose-manager all own)))))

(defun contexture--manager-to-show (ask)
  "Return this buffer's context, a name or a list of layers; or one chosen if ASK.
If this buffer's context is empty, offer the contexts that have items."
  (let ((own (contexture-current-context)))
    (cond (ask (contexture--read-manager t))
          ((or contexture-manager
               (null contexture--last-manager)
               (contexture--of-context-p contexture--last-manager own))
           (if (and (listp own) (null contexture--last-manager))
               (contexture--own-or-offered own)
             own))
          ((contexture--holds-anything-p own) own)
          ((listp own) (contexture--own-or-offered own))
          (t contexture--last-manager))))

(defun contexture--own-or-offered (own)
  "Return the layers OWN if they have items, else what the user chooses.
If no context has items, return OWN."
  (if (contexture--holds-anything-p own)
      own
    (let ((all (cl-remove-if (lambda (entry) (eql 0 (plist-get entry :count)))
                             (contexture--note-labels
                              (contexture--ask 'list-managers nil)))))
      (if all (contexture--choose-manager all own) own))))

(defun contexture--holds-anything-p (context)
  "Return non-nil if CONTEXT, a name or a list of layers, has items.
If the server does not answer at once, use its last report."
  (< 0 (or (condition-case nil
               (plist-get (contexture-request 'count-items
                                              (contexture--context-params context)
                                              :timeout 0.08)
                          :count)
             (contexture-error (car (contexture--totals-of context))))
           0)))

(defun contexture--totals-of (context)
  "Return (ITEMS . TOKENS) of CONTEXT, as last reported, or nil if unknown."
  (let ((known (delq nil (mapcar (lambda (manager)
                                   (gethash manager contexture--totals))
                                 (contexture--managers context)))))
    (when known
      (cons (apply #'+ (mapcar #'car known))
            (apply #'+ (mapcar (lambda (total) (or (cadr total) 0)) known))))))

(autoload 'contexture--candidates "contexture-layers")
(autoload 'contexture--call-each "contexture-layers")

(defun contexture--choose-manager (all own)
  "Ask the user for one of the contexts ALL, entries of the server.
OWN is the current buffer's context, a name or a list of layers."
  (let* ((candidates (contexture--candidates all))
         (name (lambda (it)
                 (car (cl-find-if (lambda (candidate)
                                    (contexture--of-context-p (cdr candidate) it))
                                  candidates))))
         (default (or (funcall name own)
                      (and contexture--last-manager
                           (funcall name contexture--last-manager))
                      (caar candidates)))
         (completion-extra-properties
          (list :annotation-function
                (lambda (name)
                  (let ((entry (nth (cl-position name candidates
                                                 :key #'car :test #'equal)
                                    all)))
                    (format "  %s" (contexture--size
                                    (plist-get entry :count)
                                    (plist-get entry :tokens)))))))
         (chosen (completing-read
                  (format-prompt "Context" (contexture--visible default))
                  (mapcar #'contexture--visible-candidate (mapcar #'car candidates))
                  nil t nil nil default)))
    (or (cdr (assoc chosen candidates)) chosen)))

(defun contexture--markdown (context)
  "Return CONTEXT, a name or a list of layers, as Markdown."
  (contexture--ask 'context-to-string (contexture--context-params context)))

;;;###autoload
(defun contexture-copy (manager)
  "Copy the context MANAGER to the kill ring, as Markdown.
MANAGER is a name or a list of names, by default this buffer's layers.
With a prefix argument, or if those layers are empty, choose one."
  (interactive (list (contexture--read-manager current-prefix-arg)))
  (let ((text (contexture--markdown manager)))
    (kill-new text)
    (contexture--message "Copied the context of %s (%s)" (contexture--label manager)
             (contexture--count (length text) "character"))))

;;;###autoload
(defun contexture-insert (manager)
  "Insert the context MANAGER at point, as Markdown.
MANAGER is a name or a list of names, by default this buffer's layers.
With a prefix argument, or if those layers are empty, choose one."
  (interactive
   (progn (barf-if-buffer-read-only)
          (list (contexture--read-manager current-prefix-arg))))
  (let ((text (contexture--markdown manager)))
    (push-mark nil t)
    (insert text)
    (contexture--message "Inserted the context of %s (%d characters)"
             (contexture--label manager) (length text))))

(provide 'contexture)
;;; contexture.el ends here
