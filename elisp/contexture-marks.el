;;; contexture-marks.el --- Items in their buffers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Shows a buffer's context in `contexture-mode', and keeps live items up
;; to date.  This file has the overlays that follow the lines of an item,
;; the marks on these lines, and the number of items in the mode line, and
;; it sends changes to the server before anybody asks for the text.

;;; Code:

(require 'cl-lib)
(require 'eldoc)
(require 'seq)
(require 'thunk)
(require 'contexture)
(eval-when-compile (require 'subr-x))

(declare-function contexture-sync--remote "contexture-sessions" ())
(declare-function contexture-list--copy-p "contexture-list" (item))
(declare-function contexture--call-method "contexture-rpc" t t)
(declare-function contexture--unanswered-calls "contexture-rpc" (connection))
(defvar contexture--own-call)
(defvar contexture-mode)

;;; Overlays that follow the lines of an item

;; Overlays over the texts of items.  Emacs moves them with the text; only
;; edits at their borders run code, which keeps them to whole lines and
;; lets undo restore them after a deletion.  Marks and live items use them.

(defconst contexture-overlay--lost-limit 20
  "Maximum number of deletions that an overlay remembers for undo.")

(defvar contexture-overlay--undo-moves (< emacs-major-version 29)
  "Non-nil if undo itself restores the borders of overlays.
Emacs up to version 28 does so, since its overlays are made of markers.")

;;;; Making one

(defun contexture-overlay--make (beg end &optional partial)
  "Return a new overlay from BEG to END that follows the text.
It covers whole lines unless PARTIAL is non-nil."
  (let ((overlay (make-overlay beg end)))
    (dolist (hook '(modification-hooks insert-in-front-hooks insert-behind-hooks))
      (overlay-put overlay hook '(contexture-overlay--edited)))
    (overlay-put overlay 'contexture-partial partial)
    overlay))

(defun contexture-overlay--cover-lines (overlay)
  "Make OVERLAY cover whole lines, unless it is partial.
A newline at the end is part of it only if it was before."
  (unless (overlay-get overlay 'contexture-partial)
    (save-excursion
      (let ((beg (progn (goto-char (overlay-start overlay)) (line-beginning-position)))
            (end (progn (goto-char (overlay-end overlay))
                        (if (bolp) (point) (line-end-position)))))
        (unless (and (= beg (overlay-start overlay)) (= end (overlay-end overlay)))
          (move-overlay overlay beg end))))))

;;;; Edits at its borders

(defun contexture-overlay--edited (overlay after beg end &optional length)
  "Keep OVERLAY to whole lines, and let undo restore it.
AFTER, BEG, END and LENGTH are the arguments of overlay hooks."
  (cond ((and undo-in-progress contexture-overlay--undo-moves))
        ((not after)
         (when (and (<= beg (overlay-start overlay)) (<= (overlay-end overlay) end)
                    (< (overlay-start overlay) (overlay-end overlay)))
           ;; All of its text is about to be deleted.
           (overlay-put overlay 'contexture-behind nil)
           (overlay-put overlay 'contexture-copied
                        (contexture-overlay--copied-p overlay beg end)))
         (when (and (< beg end)
                    (not contexture-overlay--undo-moves)
                    (or (<= beg (overlay-start overlay))
                        (>= end (overlay-end overlay))))
           ;; That text is about to be deleted.
           (let ((start (overlay-start overlay))
                 (stop (overlay-end overlay)))
             (overlay-put overlay 'contexture-lost
                          (cons (list (- end beg)
                                      (and (<= beg start) (- start beg))
                                      (and (<= stop end) (- stop beg)))
                                (seq-take (overlay-get overlay 'contexture-lost)
                                          (1- contexture-overlay--lost-limit)))))))
        ((and (eql length 0) (not (contexture-overlay--restored overlay beg end)))
         (when (and (= beg (overlay-start overlay)) (eq (char-before end) ?\n)
                    (not (overlay-get overlay 'contexture-partial)))
           ;; Lines were inserted before the first one.
           (when (= beg (overlay-end overlay)) (overlay-put overlay 'contexture-behind t))
           (move-overlay overlay end (max end (overlay-end overlay)))))))

(defun contexture-overlay--copied-p (overlay beg end)
  "Return non-nil if this buffer has OVERLAY's text outside of BEG to END.
Then a copy that is found later may not be the text."
  (let ((text (buffer-substring-no-properties (overlay-start overlay) (overlay-end overlay)))
        (case-fold-search nil))
    (save-excursion
      (save-match-data
        (contexture--widened
          (goto-char (point-min))
          (or (search-forward text beg t)
              (progn (goto-char end) (search-forward text nil t))))))))

(defun contexture-overlay--restored (overlay beg end)
  "Restore OVERLAY if undo has inserted the text from BEG to END again.
Return non-nil if it was restored.  Two hooks may run for one insertion; the
second has nothing left to do."
  (let ((lost (and undo-in-progress
                   (assq (- end beg) (overlay-get overlay 'contexture-lost)))))
    (cond (lost
           (pcase-let ((`(,_ ,start ,stop) lost))
             (move-overlay overlay
                           (if start (+ beg start) (overlay-start overlay))
                           (if stop (+ beg stop) (overlay-end overlay))))
           (overlay-put overlay 'contexture-lost
                        (remq lost (overlay-get overlay 'contexture-lost)))
           (overlay-put overlay 'contexture-restored (buffer-modified-tick)))
          (t (eql (overlay-get overlay 'contexture-restored)
                  (buffer-modified-tick))))))

;;; Marks on the lines of a context

;; The part of `contexture-mode' that marks lines.  Each item that came
;; from a buffer has one overlay there, over whole lines.  The server's
;; first answer says on which lines; from then on Emacs moves the overlay
;; with the text, and later answers only change its help text, unless the
;; item's lines have changed.
;;
;; A live item already has an overlay, which then is the mark, too.
;;
;; The mark is a line prefix, so that one overlay marks all its lines.
;; It takes no room in the text: it is drawn in the fringe or, on
;; terminals, in the margin, while there are marks and nothing else uses
;; the margin.

(defcustom contexture-mark-face nil
  "Face of text that is in the context, in buffers with `contexture-mode'."
  :type '(choice (const :tag "None" nil) face)
  :group 'contexture)

(defface contexture-mark '((t :inherit success))
  "Face of the mark, in fringe or margin, beside text in the context."
  :group 'contexture)

(defface contexture-mark-changed '((t :inherit warning))
  "Face of the mark of an item that changed, or whose file is gone."
  :group 'contexture)

(defvar contexture-marks--fetching (make-hash-table :test #'equal)
  "Hash table whose keys are the contexts that are being fetched.
The value is t, or `again' if the context changed meanwhile.")

(defvar-local contexture-marks--margin nil
  "Former left margin while the marks use the margin, else nil.
The value is a list of one list, which holds the former local value of
`left-margin-width', or is empty if there was no local value.")

(defvar-local contexture-marks--eldoc-was-off nil
  "Non-nil if ElDoc was turned on in this buffer for the marks.")

(put 'contexture-marks--margin 'permanent-local t)
(put 'contexture-marks--eldoc 'permanent-local-hook t)
(put 'contexture-marks--fetch 'permanent-local-hook t)
(put 'contexture-marks--reverted 'permanent-local-hook t)

(when (fboundp 'define-fringe-bitmap)
  (define-fringe-bitmap 'contexture-mark [#b11100000] nil nil '(center t)))

;;;; On and off

(defun contexture-marks--buffers (&optional context)
  "Return the buffers with `contexture-mode', only those of CONTEXT if non-nil."
  (cl-remove-if-not
   (lambda (buffer)
     (and (buffer-local-value 'contexture-mode buffer)
          (or (null context)
              (with-current-buffer buffer
                (equal context (contexture--known-context))))))
   (buffer-list)))

(defun contexture-marks--clear-all ()
  "Remove all marks, since without a server they may be wrong."
  (dolist (buffer (contexture-marks--buffers))
    (with-current-buffer buffer (contexture-marks--clear))))

(defun contexture-marks--clear ()
  "Remove the marks of this buffer."
  (mapc #'contexture-marks--remove (contexture-marks--overlays))
  (contexture-marks--free-margin))

(defun contexture-marks--reverted ()
  "Mark this buffer again, since its text was replaced."
  (contexture-marks--clear)
  (contexture-marks--fetch))

;;;; Following the context

(defun contexture-marks--changed (method params)
  "Fetch the shown contexts that changed according to METHOD with PARAMS."
  (when (eq method 'context-changed)
    (let ((manager (plist-get params :manager))
          (contexts (hash-table-keys contexture-marks--fetching)))
      (dolist (buffer (contexture-marks--buffers))
        (push (with-current-buffer buffer (contexture--known-context)) contexts))
      (dolist (context (delete-dups contexts))
        (when (and context (contexture--of-context-p manager context))
          (contexture-marks--fetch context))))))

(defun contexture-marks--fetch (&optional context)
  "Fetch the items of CONTEXT, by default this buffer's, and mark them.
Until the answer comes, further changes are only noted, so that many
changes in a row cost two calls.  This does not start a server."
  (when (contexture-running-p)
    (let ((context (or context (contexture--known-context))))
      (cond ((null context)
             (contexture--with-layers #'contexture-marks--fetch #'ignore))
            ((gethash context contexture-marks--fetching)
             (puthash context 'again contexture-marks--fetching))
            (t
             (puthash context t contexture-marks--fetching)
             (contexture-request-async
              'list-items (append (contexture--context-params context) '(:brief t))
              :success (lambda (items)
                         (contexture-marks--show-everywhere context items)
                         (contexture-marks--fetched context))
              :error (lambda (_) (contexture-marks--fetched context))))))))

(defun contexture-marks--fetched (manager)
  "Record that MANAGER was fetched; fetch it again if it changed meanwhile."
  (let ((again (eq (gethash manager contexture-marks--fetching) 'again)))
    (remhash manager contexture-marks--fetching)
    (when (and again (contexture-marks--buffers manager))
      (contexture-marks--fetch manager))))

(defun contexture-marks--show-everywhere (manager items)
  "Mark the ITEMS of MANAGER in all buffers that have it as their context."
  (when (contexture-running-p)
    (contexture--note-items manager items)
    (dolist (buffer (contexture-marks--buffers manager))
      (with-current-buffer buffer
        (with-demoted-errors "Contexture: %S"
          (contexture-marks--show manager items))))))

;;;; Which items, which lines

(defun contexture-marks--items-here (items)
  "Return those of ITEMS that came from this buffer."
  (let* ((base (contexture--base-buffer))
         (name (buffer-name base))
         (files (contexture-live--names base)))
    (cl-remove-if-not
     (lambda (item)
       (let* ((metadata (plist-get item :metadata))
              (source (plist-get metadata :filename)))
         (cond (source (member source files))
               (files nil)
               (t (equal (plist-get metadata :buffer) name)))))
     items)))

(defun contexture-marks--bounds (metadata)
  "Return the bounds of the lines that METADATA names, or nil.
For a whole buffer or file, return those of the first line.  The buffer
must be widened; this moves point."
  (let* ((start (or (plist-get metadata :start-line) 1))
         (end (or (plist-get metadata :end-line) start)))
    (goto-char (point-min))
    (when (and (= 0 (forward-line (1- start)))
               (not (and (eobp) (> start 1))))
      (let ((beg (point)))
        (forward-line (- (1+ end) start))
        (when (and (= start 1)
                   (memq (plist-get metadata :origin) '(:buffer :file))
                   (or (eobp) (null (plist-get metadata :start-line))))
          (goto-char beg)
          (forward-line))
        (cons beg (point))))))

;;;; Overlays

(defun contexture-marks--overlays ()
  "Return all marks of this buffer."
  (contexture--widened
    (cl-remove-if-not (lambda (overlay) (overlay-get overlay 'contexture-mark))
                      (overlays-in (point-min) (point-max)))))

(defun contexture-marks--show (manager items)
  "Mark in this buffer the ITEMS of MANAGER that came from it.
Existing marks stay in place unless the lines of their items have changed."
  (let ((old (make-hash-table :test #'equal))
        (here (contexture-marks--items-here items)))
    (dolist (overlay (contexture-marks--overlays))
      (puthash (overlay-get overlay 'contexture-mark) overlay old))
    (if here (contexture-marks--take-margin) (contexture-marks--free-margin))
    (contexture--widened
      (dolist (item here)
        (when-let* ((overlay (contexture-marks--place
                              item (gethash (plist-get item :id) old))))
          (remhash (plist-get item :id) old)
          (contexture-marks--dress overlay manager item))))
    (maphash (lambda (_ overlay) (contexture-marks--remove overlay)) old)))

(defun contexture-marks--remove (overlay)
  "Remove the mark OVERLAY, or only hide it if it belongs to a live item."
  (if (overlay-get overlay 'contexture-live)
      (dolist (property '(contexture-mark contexture-lines face help-echo
                          before-string line-prefix))
        (overlay-put overlay property nil))
    (delete-overlay overlay)))

(defun contexture-marks--place (item overlay)
  "Return the mark for ITEM, or nil if its lines do not exist.
The mark of a live item is the overlay that it already has.  Otherwise,
reuse OVERLAY if it is non-nil and ITEM's lines are still the same."
  (let* ((metadata (plist-get item :metadata))
         (id (plist-get item :id))
         (lines (cons (plist-get metadata :start-line)
                      (plist-get metadata :end-line)))
         (live (contexture-live--overlay id))
         (new (cond (live)
                    ((and overlay (not (overlay-get overlay 'contexture-live))
                          (equal lines (overlay-get overlay 'contexture-lines)))
                     overlay)
                    (t (when-let* ((bounds (contexture-marks--bounds metadata)))
                         (contexture-overlay--make (car bounds) (cdr bounds)))))))
    (when new
      (overlay-put new 'contexture-mark id)
      (overlay-put new 'contexture-lines lines)
      (when (and overlay (not (eq overlay new)))
        (contexture-marks--remove overlay)))
    new))

(defun contexture-marks--dress (overlay manager item)
  "Give OVERLAY the look and the help text of ITEM of MANAGER."
  ;; Our prefix would hide a prefix that shows indentation, as in
  ;; `org-indent-mode'.  There, mark only the first line.
  (let ((glyph (contexture-marks--glyph item))
        (taken (text-property-not-all (overlay-start overlay)
                                      (overlay-end overlay)
                                      'line-prefix nil)))
    (overlay-put overlay 'face contexture-mark-face)
    (overlay-put overlay 'help-echo
                 (contexture--help
                  (contexture--format "in context %s (%s, %s, %s)"
                                      (let ((manager (or (plist-get item :manager) manager)))
                                        (gethash manager contexture--labels manager))
                                      (plist-get item :id)
                                      (contexture--count (or (plist-get item :tokens) 0) "token")
                                      (contexture--item-state item))))
    (overlay-put overlay 'before-string (and taken glyph))
    (overlay-put overlay 'line-prefix (and (not taken) glyph))))

(defun contexture-marks--glyph (item)
  "Return the string that shows ITEM's mark beside the text."
  (let ((face (if (member (contexture--item-state item) '("changed" "gone"))
                  'contexture-mark-changed
                'contexture-mark)))
    (concat
     (when (fboundp 'define-fringe-bitmap)
       (propertize " " 'display (list 'left-fringe 'contexture-mark face)))
     (when contexture-marks--margin
       (propertize " " 'display
                   (list '(margin left-margin)
                         (propertize (if (char-displayable-p ?┃) "┃" "|")
                                     'face face)))))))

(defun contexture-marks--eldoc (&rest _)
  "Return the help text for the items on point's line, or nil."
  (when-let* ((overlays (cl-remove-if-not
                         (lambda (overlay)
                           (and (overlay-get overlay 'contexture-mark)
                                (< (overlay-start overlay) (overlay-end overlay))))
                         (overlays-in (line-beginning-position)
                                      (min (point-max) (1+ (line-end-position)))))))
    (mapconcat (lambda (overlay) (overlay-get overlay 'help-echo))
               (cl-sort overlays #'< :key #'overlay-start) "; ")))

;;;; The margin of a terminal

(defun contexture-marks--take-margin ()
  "Use the left margin for marks if they need it and it is free."
  (cond (contexture-marks--margin
         ;; A change of the major mode resets the variable.
         (when (eql 0 left-margin-width) (setq left-margin-width 1)))
        ((and (cl-some (lambda (frame)
                         (not (or (display-graphic-p frame)
                                  (and (daemonp) (eq frame terminal-frame)))))
                       (frame-list))
              (eql 0 (or left-margin-width 0))
              (cl-notany (lambda (window) (car (window-margins window)))
                         (get-buffer-window-list nil nil t)))
         (setq contexture-marks--margin
               (list (and (local-variable-p 'left-margin-width)
                          (list left-margin-width))))
         (setq left-margin-width 1)
         (contexture-marks--set-margins 1))))

(defun contexture-marks--free-margin ()
  "Restore the former left margin.
If the margin was widened meanwhile, leave it alone."
  (when contexture-marks--margin
    (when (eql 1 left-margin-width)
      (if-let* ((former (car contexture-marks--margin)))
          (setq left-margin-width (car former))
        (kill-local-variable 'left-margin-width)))
    (when (eql 0 (or left-margin-width 0))
      (contexture-marks--set-margins nil))
    (kill-local-variable 'contexture-marks--margin)))

(defun contexture-marks--set-margins (width)
  "Make the left margin of all windows on this buffer WIDTH columns wide.
If something else changed it, leave it alone."
  (dolist (window (get-buffer-window-list nil nil t))
    (pcase-let ((`(,left . ,right) (window-margins window)))
      (when (eql left (if width nil 1))
        (set-window-margins window width right)))))

;;; Keep a buffer's context in view

;; `contexture-mode' shows the size of a buffer's context in the mode
;; line, and marks the lines that are in it.
;; `contexture-global-mode' turns it on in all buffers that visit files.
;; Both only listen to a running server; neither starts one.

(defface contexture-over-limit '((t :inherit warning))
  "Face of the mode line's numbers when the limit is nearly used up."
  :group 'contexture)

(defvar-local contexture--from-global-mode nil
  "Non-nil if `contexture-global-mode' turned the mode on in this buffer.")

;; The mode survives a change of the major mode, as in `revert-buffer'.
(put 'contexture-mode 'permanent-local t)
(put 'contexture--from-global-mode 'permanent-local t)

;;;; The mode

;;;###autoload
(define-minor-mode contexture-mode
  "Show the context of this buffer while you edit.
The mode line shows the items and tokens that the buffer sends, such as
\"ctx:3/412\", and `contexture-limit' if that is set.  If you chose another
context with `contexture-switch', its name follows in brackets, as in
\"ctx[shared]:3/412\".  Lines that are in the context have a mark in the
fringe, or in the margin of a terminal; with point on such a line the echo
area says more.  All this appears once a command has reached the server, and
follows every change, whoever makes it.

\\[contexture-add-dwim] adds what is at hand, \\[contexture-list] lists \
the items, \\[contexture-preview] shows
what a model gets, and \\[contexture-menu] shows all commands.  They \
are behind
the prefix to which you bound the variable `contexture-command-map':

\\{contexture-command-map}"
  :lighter (:eval (contexture--lighter))
  :group 'contexture
  (if contexture-mode
      (contexture--mode-on)
    (contexture-marks--clear)
    (remove-hook 'after-save-hook #'contexture-marks--fetch t)
    (remove-hook 'after-revert-hook #'contexture-marks--reverted t)
    (remove-hook 'eldoc-documentation-functions #'contexture-marks--eldoc t)
    (when contexture-marks--eldoc-was-off
      (kill-local-variable 'contexture-marks--eldoc-was-off)
      (eldoc-mode -1))
    (kill-local-variable 'contexture--from-global-mode)
    (remove-hook 'context-menu-functions #'contexture--context-menu t)
    (remove-hook 'kill-buffer-hook #'contexture--mode-off t)
    (unless (contexture-marks--buffers)
      (contexture-unwatch #'contexture--totals-changed)
      (contexture-unwatch #'contexture-marks--changed)
      (remove-hook 'contexture-connected-hook #'contexture--mode-connected)
      (remove-hook 'contexture-disconnected-hook #'contexture-marks--clear-all))))

(defun contexture--mode-on ()
  "Turn the mode on."
  (add-hook 'kill-buffer-hook #'contexture--mode-off nil t)
  (add-hook 'context-menu-functions #'contexture--context-menu 10 t)
  ;; Look for the project only here: the mode line must not.
  (with-demoted-errors "Contexture: %S" (contexture--project-root))
  (unless (memq #'contexture--totals-changed contexture-notification-functions)
    (contexture-watch #'contexture--totals-changed)
    (contexture-watch #'contexture-marks--changed)
    (add-hook 'contexture-connected-hook #'contexture--mode-connected)
    (add-hook 'contexture-disconnected-hook #'contexture-marks--clear-all)
    (contexture--fetch-totals))
  (add-hook 'after-save-hook #'contexture-marks--fetch nil t)
  (add-hook 'after-revert-hook #'contexture-marks--reverted nil t)
  (add-hook 'eldoc-documentation-functions #'contexture-marks--eldoc 90 t)
  (when (and global-eldoc-mode (not eldoc-mode))
    (eldoc-mode 1)
    (setq contexture-marks--eldoc-was-off t))
  (contexture-marks--fetch))

(defun contexture--mode-off ()
  "Turn the mode off in a buffer that is going away."
  (contexture-mode -1))

(defun contexture--mode-connected ()
  "Show sizes and marks from the server that was just connected."
  (contexture--fetch-totals)
  (dolist (buffer (contexture-marks--buffers))
    (with-current-buffer buffer (contexture-marks--fetch))))

;;;; The mouse

(defun contexture--context-menu (menu click)
  "Add to MENU, of `context-menu-mode', the commands for the text at CLICK."
  (define-key-after menu [contexture-separator] menu-bar-separator)
  (pcase-dolist
      (`(,command ,label)
       `((contexture-add-dwim ,(if (use-region-p) "Add Region to Context"
                                 "Add to Context"))
         ,@(when (get-char-property (posn-point (event-start click)) 'contexture-mark)
             '((contexture-remove "Remove from Context")
               (contexture-keep-copy "Keep a Copy of Item")))
         (contexture-send-to-agent "Send to Agent")
         (contexture-rewrite "Rewrite by a Model…")
         (contexture-list "List Context")))
    (define-key-after menu (vector command)
      (list 'menu-item label
            (lambda ()
              (interactive)
              (unless (use-region-p) (mouse-set-point click))
              (call-interactively command)))))
  menu)

;;;; The mode line

(defun contexture--fetch-totals ()
  "Ask a running server for the sizes of all contexts."
  (when (contexture-running-p)
    (clrhash contexture--totals) ; the versions may be another server's
    (contexture-request-async
     'list-managers nil
     :success (lambda (entries)
                (dolist (entry (contexture--note-labels entries))
                  (contexture--note-totals (plist-get entry :manager) entry))))))

(defun contexture--totals-changed (method params)
  "Record the size in PARAMS if METHOD says that a context changed."
  (when (eq method 'context-changed)
    ;; Another Emacs may have given a project its new name.
    (when (equal (contexture--name (plist-get params :method)) "open-layers")
      (contexture--forget-layers))
    (contexture--note-totals (plist-get params :manager) params)))

(defconst contexture--lighter-width 16
  "Maximum width of a context's name in the mode line.")

(defun contexture--lighter ()
  "Return the mode line's text for this buffer."
  (pcase-let* ((context (contexture--known-context))
               (`(,items . ,sent) (contexture--totals-of context))
               (stale (car (gethash context contexture--stale-and-unsent '(0))))
               (on-disk (cl-count-if
                         (lambda (conflict)
                           (cl-some (lambda (it) (contexture--of-context-p it context))
                                    (cdr conflict)))
                         contexture--conflicts))
               (name (contexture--lighter-name context))
               (text (cond ((null items) name)
                           (contexture-limit
                            (contexture--budget-lighter name items sent))
                           (t (format "%s:%d/%d" name items sent)))))
    (if (or (null items) (= 0 stale on-disk)) text
      (append (ensure-list text)
              (list (propertize
                     (cond ((= 0 on-disk) (format " %d changed" stale))
                           ((<= stale on-disk) (format " %d changed on disk" on-disk))
                           (t (format " %d changed, %d on disk" stale on-disk)))
                     'face 'contexture-mark-changed))))))

(defun contexture--lighter-name (manager)
  "Return the label of the context MANAGER in the mode line.
The buffer's own layers need no name."
  (cond ((or (listp manager)
             (equal manager (buffer-name (contexture--base-buffer))))
         " ctx")
        ((equal manager contexture--shared) " ctx[shared]")
        (t (format " ctx[%s]"
                   ;; Percent signs are doubled after the cut, which could
                   ;; otherwise leave half of a pair.
                   (contexture--header-text
                    (truncate-string-to-width
                     (contexture--visible
                      (gethash manager contexture--labels
                               (contexture--last-name manager)))
                     contexture--lighter-width nil nil t))))))

(defun contexture--budget-lighter (name items tokens)
  "Return the text for NAME and ITEMS with TOKENS, and the budget.
The result is a list, since in the mode line each string has one face."
  (let ((text (format "%d/%d" tokens contexture-limit)))
    (list (format "%s:%d " name items)
          (if (> (* 5 tokens) (* 4 contexture-limit))
              (propertize text 'face 'contexture-over-limit)
            text))))

;;;; Everywhere

;;;###autoload
(define-minor-mode contexture-global-mode
  "Turn `contexture-mode' on in each buffer that visits a file.
When you turn this mode off, it turns `contexture-mode' off only where it
had turned it on."
  :global t
  :group 'contexture
  (dolist (hook '(find-file-hook after-set-visited-file-name-hook))
    (if contexture-global-mode (add-hook hook #'contexture--turn-on)
      (remove-hook hook #'contexture--turn-on)))
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (cond (contexture-global-mode (contexture--turn-on))
            (contexture--from-global-mode (contexture-mode -1))))))

(defun contexture--turn-on ()
  "Turn the mode on if this buffer visits a file and the mode is off."
  (when (and buffer-file-name (not contexture-mode))
    (contexture-mode 1)
    (setq contexture--from-global-mode t)))

;;; Items that follow what you type

;; A live item has the current text of its source.  The server reads
;; files, and this file sends it the texts of buffers.  Each live item of
;; a buffer has an overlay that follows the edits, even without
;; `contexture-mode'.  Changes are sent to the server in one call: after a
;; pause in typing, and before each call that shows or sends items.  The
;; calls of a connection begin in order, so nothing waits for the answer.
;;
;; No code runs after each command: the modification count of a buffer
;; shows whether it has changed.
;;
;; An overlay is placed only on the exact text of its item, or, in a buffer
;; that was edited before its items were known, where the lines of the file
;; are now.  Where this place is uncertain, the item is stale, and it is
;; looked for again when the buffer is saved or reverted.

(defcustom contexture-live-delay 0.5
  "Seconds without input after which your edits are sent to the server.
Anything that shows or sends items sends your edits first."
  :type 'number
  :group 'contexture)

(cl-defstruct (contexture-live--item (:constructor contexture-live--make-item)
                                     (:copier nil))
  "A live item of a buffer.
OVERLAY is over its text; it is nil for a whole buffer, and `none' until
the item has a place.  TOLD is the state that the server knows, a value
of `contexture-live--state', and SAVED the last state that was saved."
  id manager overlay told saved)

(defvar-local contexture-live--items nil
  "Live items of this buffer, structures of type `contexture-live--item'.")

(defvar-local contexture-live--seen nil
  "Value of `contexture-live--sign' when the server was last told.")

(defvar-local contexture-live--new nil
  "Items of this buffer that got their places after `contexture-live--seen'.")

(defvar-local contexture-live--file nil
  "File that this buffer visited when its items were placed.")

(defvar-local contexture-live--true nil
  "Pair of `contexture-live--file' and the name by which the server knows it.")

(defvar-local contexture-live--before nil
  "Text that this buffer had before it was reverted, or t if nobody needs it.
After the revert, it is (TICK . TEXT), with the modification count from then,
or nil.")

(dolist (variable '(contexture-live--items contexture-live--seen contexture-live--new
                    contexture-live--file contexture-live--true contexture-live--before))
  (put variable 'permanent-local t))
(dolist (hook '(contexture-live--about-to-revert
                contexture-live--reverted contexture-live--written contexture-live--killed
                contexture-live--renamed))
  (put hook 'permanent-local-hook t))

(defvar contexture-live--buffers nil
  "Buffers with live items.")

(defvar contexture-live--copies nil
  "Items that follow buffers without files: a list of (ID MANAGER BUFFER TICK).
TICK is the modification count of BUFFER when the server was last told.")

(defvar contexture-live--places (make-hash-table :test #'equal)
  "Hash table from the id of each live item of a buffer to (BUFFER . ITEM).")

(defvar contexture-live--timer nil
  "Idle timer that sends changes to the server, or nil.")

(defvar contexture-live--next-look nil
  "Idle timer that sends changes again while Emacs stays idle, or nil.")

(defconst contexture-live--look-seconds 2
  "Number of seconds between looks at the files of edited buffers.")

;;;; The state of a buffer

(defun contexture-live--held-p ()
  "Return why the server cannot find this buffer's text in its file, or nil.
The value is `unsaved', or `conflict' if the file changed on disk as well,
or `form' if the file has the text in another form: it may be on another
machine, compressed, or not encoded as UTF-8."
  (with-current-buffer (contexture--base-buffer)
    (cond ((contexture-live--conflict-p) 'conflict)
          ((buffer-modified-p) 'unsaved)
          ((not (and (null buffer-file-format)
                     (not (find-file-name-handler buffer-file-name
                                                  'insert-file-contents))
                     (or (null buffer-file-coding-system)
                         (memq (coding-system-type buffer-file-coding-system)
                               '(utf-8 undecided))
                         (eq (coding-system-base buffer-file-coding-system) 'us-ascii))))
           'form))))

(defun contexture-live--modified-p (held)
  "Return non-nil if a buffer with HELD, of `contexture-live--held-p', has edits."
  (and (memq held '(unsaved conflict)) t))

(defun contexture-live--sign ()
  "Return a value that changes whenever the server must be told of this buffer."
  (cons (buffer-chars-modified-tick) (contexture-live--held-p)))

(defun contexture-live--state (item held from)
  "Return the state of ITEM in this buffer, which is widened.
It is a list (TEXT LINES HELD LOST).  LINES is a pair, or nil for a whole
buffer.  LOST is nil, or the reason why the buffer no longer has TEXT, the
last known text.  FROM is as in `contexture-live--lines'."
  (let* ((overlay (contexture-live--item-overlay item))
         (lost (and overlay (contexture-live--lost item overlay))))
    (cond ((null overlay)
           (list (buffer-substring-no-properties (point-min) (point-max)) nil held nil))
          (lost (pcase-let ((`(,text ,lines) (contexture-live--item-told item)))
                  (list text lines held lost)))
          (t
           (let ((beg (overlay-start overlay)) (end (overlay-end overlay)))
             (list (buffer-substring-no-properties beg end)
                   (contexture-live--lines beg end from)
                   held nil))))))

(defun contexture-live--lost (item overlay)
  "Return why the OVERLAY of ITEM has no text in this buffer, or nil.
Find the text if it is back in its place, or exactly once elsewhere."
  (let ((place (overlay-start overlay)))
    (cond ((null place)
           (unless (contexture-live--revive item overlay (point-min))
             "its place in the buffer has been lost"))
          ((= place (overlay-end overlay))
           (unless (contexture-live--revive item overlay place)
             "deleted in the buffer"))
          (t (contexture-overlay--cover-lines overlay) nil))))

(defun contexture-live--revive (item overlay place)
  "Put OVERLAY of ITEM on its last text at PLACE, or exactly once elsewhere.
If the file has other copies of the text, put it only at PLACE, which is
OVERLAY's.  Return non-nil on success."
  (when-let* ((text (or (car (contexture-live--item-told item))
                        (car (contexture-live--item-saved item))))
              (bounds (if (overlay-get overlay 'contexture-copied)
                          ;; The overlay may have been moved behind what came back.
                          (cl-loop for beg in (cons place
                                                    (and (overlay-get overlay 'contexture-behind)
                                                         (list (- place (length text)))))
                                   when (and (overlay-start overlay) (>= beg (point-min))
                                             (contexture-live--at-p
                                              text beg (overlay-get overlay 'contexture-partial)))
                                   return (cons beg (+ beg (length text))))
                        (contexture-live--find
                         text place (overlay-get overlay 'contexture-partial)))))
    (move-overlay overlay (car bounds) (cdr bounds) (current-buffer))))

(defun contexture-live--find (text place &optional partial)
  "Return the bounds of TEXT at PLACE, or of its only copy in this buffer.
A copy must begin a line unless PARTIAL is non-nil.  The buffer must be
widened."
  (unless (string-blank-p text)
    (let ((pattern (concat (unless partial "^") (regexp-quote text)))
          (case-fold-search nil))
      (if (contexture-live--at-p text place partial)
          (cons place (+ place (length text)))
        (save-excursion
          (goto-char (point-min))
          (when (re-search-forward pattern nil t)
            (let ((beg (match-beginning 0)) (end (point)))
              (goto-char (1+ beg))
              (unless (re-search-forward pattern nil t)
                (cons beg end)))))))))

(defun contexture-live--at-p (text place partial)
  "Return non-nil if TEXT is at PLACE in this buffer.
That must be where a line begins, unless PARTIAL is non-nil."
  (let ((end (+ place (length text))))
    (and (<= end (point-max))
         (or partial (= place (point-min)) (eq (char-before place) ?\n))
         (string= text (buffer-substring-no-properties place end)))))

(defun contexture-live--lines (beg end from)
  "Return the first and last line of the text from BEG to END, as a pair.
FROM is a pair of a position and its line; move it to BEG, so that all lines
of a buffer are counted once if BEG is mostly after it."
  (when (< beg (car from))              ; the text was found again elsewhere
    (setcar from (point-min))
    (setcdr from 1))
  (setcdr from (+ (cdr from) (contexture-live--newlines (car from) beg)))
  (setcar from beg)
  (let ((last (if (and (> end beg) (eq (char-before end) ?\n)) (1- end) end)))
    (cons (cdr from) (+ (cdr from) (contexture-live--newlines beg last)))))

(defun contexture-live--newlines (beg end)
  "Return the number of newlines between BEG and END."
  (save-restriction
    (narrow-to-region beg end)
    (1- (line-number-at-pos end))))

;;;; Sending changes to the server

(defun contexture-live--push ()
  "Send the changes of buffers with live items to the server, in one call.
This does not wait for the answer.  A server that cannot be reached gets
them when it is back."
  (when (and (or contexture-live--buffers contexture-live--copies) (contexture-running-p))
    (with-demoted-errors "Contexture: %S"
      (contexture-live--note-conflicts)
      (contexture-live--tell
       (nconc
        (contexture-live--copy-changes)
        (cl-loop for buffer in contexture-live--buffers
                nconc (contexture--with-live-buffer buffer
                        (unless (contexture-live--reverting-p)
                          (contexture-live--news-here)))))))))

(defun contexture-live--news-here ()
  "Return the updates for what changed in this buffer since the last ones."
  (let* ((sign (contexture-live--sign))
         (items (if (equal sign contexture-live--seen)
                    contexture-live--new
                  contexture-live--items)))
    (setq contexture-live--seen sign
          contexture-live--new nil)
    (and items (contexture-live--changes-here items (cdr sign)))))

;;;; Copies of buffers without files

(defconst contexture-live--largest-copy 1000000
  "Maximum size, in characters, of a buffer without a file that is followed.")

(defun contexture-live--follow-copy (manager item)
  "Let ITEM of MANAGER follow its buffer if that has no file, as of a process."
  (when-let* ((buffer (and (contexture-list--copy-p item)
                           (get-buffer (plist-get (plist-get item :metadata) :buffer)))))
    (setf (alist-get (plist-get item :id) contexture-live--copies nil nil #'equal)
          (list manager buffer nil))
    (with-current-buffer buffer
      (add-hook 'kill-buffer-hook #'contexture-live--copy-killed nil t))
    (contexture-live--start-timer)
    (contexture-live--push)))

(defun contexture-live--copy-changes ()
  "Return the updates of the items that follow buffers without files."
  (cl-loop for (id manager buffer tick) in contexture-live--copies
           for now = (and (buffer-live-p buffer) (buffer-chars-modified-tick buffer))
           unless (eql now tick)
           collect (contexture-live--copy-update id manager buffer)))

(defun contexture-live--copy-update (id manager buffer)
  "Return the update that gives the item ID of MANAGER the text of BUFFER."
  (let ((large (> (buffer-size buffer) contexture-live--largest-copy)))
    (setf (alist-get id contexture-live--copies nil large #'equal)
          (unless large (list manager buffer (buffer-chars-modified-tick buffer))))
    `(:id ,id :manager ,manager
      ,@(if large
            '(:metadata (:stale "its buffer has become too large to follow"))
          (with-current-buffer buffer
            (contexture--widened
              `(:content ,(contexture--plain-text (buffer-substring-no-properties
                                                   (point-min) (point-max)))
                :metadata (:buffer ,(buffer-name) ,@(contexture--as-of)))))))))

(defun contexture-live--copy-killed ()
  "Tell the server the last text of this buffer, which is going away."
  (contexture-live--push)
  (contexture-live--tell
   (cl-loop for (id manager buffer) in contexture-live--copies
            when (eq buffer (current-buffer))
            collect (list :id id :manager manager
                          :metadata '(:stale "its buffer was killed"))))
  (setq contexture-live--copies
        (cl-remove (current-buffer) contexture-live--copies :key #'caddr)))

;;;; Files that change under unsaved edits

(defun contexture-live--conflict-p ()
  "Return non-nil if this buffer's file changed on disk under unsaved edits."
  (and (buffer-modified-p)
       buffer-file-name
       (not (contexture-outside--taken-p buffer-file-name))
       (not (verify-visited-file-modtime))))

(defun contexture-live--note-conflicts ()
  "Note which edited buffers with items have files that changed on disk.
Tell about new ones, since what is sent is not what the file has."
  (let ((conflicts (cl-loop for buffer in contexture-live--buffers
                            nconc (contexture--with-live-buffer buffer
                                    (and (contexture-live--conflict-p)
                                         (contexture-live--conflicts-here))))))
    (unless (equal conflicts contexture--conflicts)
      (let ((new (cl-set-difference (mapcar #'car conflicts) (mapcar #'car contexture--conflicts)
                                    :test #'equal)))
        (setq contexture--conflicts conflicts)
        (force-mode-line-update t)
        (when new
          (if (contexture-live--gone-p (car new))
              (contexture--message "%s is gone from the disk; your unsaved edits are what is sent"
                                   (contexture--last-name (car new)))
            (contexture--message
             "%s changed on disk under your unsaved edits, which are what is sent; %s compares them"
             (contexture--last-name (car new)) (contexture--key 'contexture-ediff))))))))

(defun contexture-live--conflicts-here ()
  "Return the names of this buffer's file, the first with its items' contexts."
  (pcase-let ((`(,name . ,others) (contexture-live--names)))
    (cons (cons name (delete-dups (mapcar #'contexture-live--item-manager contexture-live--items)))
          (mapcar #'list others))))

(defconst contexture-live--patience 2
  "Maximum number of seconds to wait until the server knows the changes.")

(defun contexture-live--push-and-wait ()
  "Send the changes to the server, and wait until it has them.
Use this before something reaches the server on a connection other than
Emacs's own, such as the input of a REPL.  If the server does not answer
in time, say so and go on."
  (contexture-live--push)
  (condition-case nil
      (when (contexture-running-p)
        (contexture--wait contexture--connection contexture-live--patience
                          (lambda ()
                            (or (not (contexture-running-p))
                                (not (member "update-items"
                                             (mapcar #'contexture--call-method
                                                     (contexture--unanswered-calls
                                                      contexture--connection))))))))
    (contexture-error
     (contexture--message "Contexture: the server does not answer, so the model may \
get the text from before your last edits"))))

(defun contexture-live--tell (updates)
  "Send UPDATES of items, in one call.
They are never sent again, since newer ones may have been sent meanwhile."
  (when (and updates (contexture-running-p))
    (let ((contexture--own-call t))
      (contexture-request-async
       'update-items (list :items updates)
       :success (lambda (result)
                  (mapc #'contexture-live--forget-item
                        (plist-get result :skipped)))))))

(defun contexture-live--resume (same)
  "Send all items of buffers to a server that was just reached.
If it is not the SAME server with the same state, its ids mean other
items, so let no item follow a buffer."
  (if same
      (dolist (copy contexture-live--copies) (setf (nth 3 copy) nil))
    (setq contexture-live--copies nil))
  (dolist (buffer contexture-live--buffers)
    (contexture--with-live-buffer buffer
      (if (not same)
          (contexture-live--release)
        (setq contexture-live--seen nil)
        (dolist (item contexture-live--items)
          (let ((told (contexture-live--item-told item)))
            (setf (contexture-live--item-told item)
                  (list (car told) (nth 1 told) 'unknown (nth 3 told))))))))
  (contexture-live--push))

(defun contexture-live--changes-here (items held)
  "Return the updates for those of this buffer's ITEMS that have changed.
HELD is the value of `contexture-live--held-p'."
  (contexture--widened
    (let ((from (cons (point-min) 1)))
      (delq nil
            (mapcar (lambda (item)
                      (let* ((state (contexture-live--state item held from))
                             (told (contexture-live--item-told item)))
                        (unless (or (equal told state)
                                    ;; What never had a place here is only in the file.
                                    (and (nth 3 state) (null held) told (null (car told))))
                          (setf (contexture-live--item-told item) state)
                          (contexture-live--note-saved item)
                          (contexture-live--update
                           item state
                           (or (eq held 'conflict)
                               (not (and (equal (car told) (car state))
                                         (equal (cddr told) (cddr state)))))
                           ;; The server may follow what became of the file; the text is here.
                           (and (or (null told) (contexture-live--modified-p held))
                                contexture-live--file
                                (contexture-live--known-file))))))
                    (contexture-live--in-order items))))))

(defun contexture-live--note-saved (item)
  "Note the state of ITEM that the server knows if its file has the same text.
The file may have it in another form.  That it lacks the text counts only
there: the server looks into all other files itself."
  (pcase-let ((`(,text ,lines ,held ,lost) (contexture-live--item-told item)))
    (unless (or (null text)
                (contexture-live--modified-p held)
                (and lost (not (eq held 'form))))
      (setf (contexture-live--item-saved item) (list text lines nil lost)))))

(defun contexture-live--known-file ()
  "Return the name by which the server knows this buffer's file."
  (unless (equal (car contexture-live--true) contexture-live--file)
    (setq contexture-live--true (cons contexture-live--file
                                      (contexture--true-name contexture-live--file))))
  (cdr contexture-live--true))

(defun contexture-live--in-order (items)
  "Return the ITEMS that have a place, sorted by their beginnings."
  (cl-flet ((start (item)
              (let ((overlay (contexture-live--item-overlay item)))
                (or (and overlay (overlay-start overlay)) 0))))
    (sort (cl-remove 'none (copy-sequence items) :key #'contexture-live--item-overlay)
          (lambda (a b) (< (start a) (start b))))))

(defun contexture-live--update (item state whole &optional file)
  "Return the update that gives ITEM the STATE, with its text if WHOLE.
FILE is the name of its file if that is new."
  (pcase-let ((`(,text ,lines ,held ,lost) state))
    `(:id ,(contexture-live--item-id item)
      :manager ,(contexture-live--item-manager item)
      ,@(and whole text (not lost) (list :content text))
      :metadata (,@(and lines (list :start-line (car lines) :end-line (cdr lines)))
                 :unsaved ,(and held t) :modified ,(contexture-live--modified-p held)
                 ,@(cond (lost (list :stale lost))
                         ((eq held 'conflict)
                          (list :stale
                                (if (contexture-live--gone-p buffer-file-name)
                                    "its file is gone; this text was not saved"
                                  "its file changed on disk under unsaved edits"))))
                 ,@(and file (list :filename file))))))

;;;; Buffers with items

(defun contexture-live--track (id manager told &optional place)
  "Let the item ID of MANAGER follow this buffer, which is not indirect.
TOLD is the state that the server knows.  PLACE is a list (BEG END PARTIAL),
whose BEG is nil if the place is uncertain, or nil for a whole buffer."
  (let* ((known (contexture-live--find-item id))
         (item (if (eq (car known) (current-buffer)) (cdr known)
                 (contexture-live--forget-item id)
                 (contexture-live--make-item :id id))))
    (setf (contexture-live--item-manager item) manager
          (contexture-live--item-told item) told)
    (contexture-live--note-saved item)
    ;; Keep an existing overlay, which may be a mark, too.
    (pcase-let ((overlay (contexture-live--item-overlay item))
                (`(,beg ,end ,partial) place))
      (cond ((and beg (overlayp overlay))
             (move-overlay overlay beg end (current-buffer)))
            (t (contexture-live--drop-overlay item)
               (setf (contexture-live--item-overlay item)
                     (when place
                       (setq overlay (contexture-overlay--make (or beg (point-min))
                                                               (or end (point-min))
                                                               (and partial t)))
                       (overlay-put overlay 'contexture-live t)
                       (unless beg (delete-overlay overlay))
                       overlay)))))
    (cl-pushnew item contexture-live--items)
    (cl-pushnew item contexture-live--new)
    (puthash id (cons (current-buffer) item) contexture-live--places)
    (setq contexture-live--file (expand-file-name buffer-file-name))
    (contexture-live--join)))

(defun contexture-live--join ()
  "Make the items of this buffer follow your edits."
  (unless (memq (current-buffer) contexture-live--buffers)
    (push (current-buffer) contexture-live--buffers)
    (add-hook 'before-revert-hook #'contexture-live--about-to-revert nil t)
    (add-hook 'after-revert-hook #'contexture-live--reverted nil t)
    (add-hook 'after-save-hook #'contexture-live--written nil t)
    (add-hook 'kill-buffer-hook #'contexture-live--killed nil t)
    (add-hook 'after-set-visited-file-name-hook #'contexture-live--renamed nil t))
  (contexture-live--start-timer))

(defun contexture-live--start-timer ()
  "Send changes after pauses in typing from now on."
  (unless contexture-live--timer
    (setq contexture-live--timer
          (run-with-idle-timer contexture-live-delay t #'contexture-live--look))))

(defun contexture-live--look ()
  "Send the changes, and look again while Emacs stays idle with unsaved edits.
Meanwhile, other programs may write the files."
  (contexture-live--push)
  (when contexture-live--next-look (cancel-timer contexture-live--next-look))
  (setq contexture-live--next-look
        (when-let* ((idle (current-idle-time))
                    ((cl-some (lambda (buffer)
                                (and (buffer-live-p buffer) (buffer-modified-p buffer)))
                              contexture-live--buffers)))
          (run-with-idle-timer (time-add idle contexture-live--look-seconds) nil
                               #'contexture-live--look))))

(defun contexture-live--release ()
  "Let no item follow this buffer any more."
  (dolist (item contexture-live--items)
    (contexture-live--drop-overlay item)
    (remhash (contexture-live--item-id item) contexture-live--places))
  (mapc #'kill-local-variable
        '(contexture-live--items contexture-live--seen contexture-live--new
          contexture-live--file contexture-live--true contexture-live--before))
  (remove-hook 'before-revert-hook #'contexture-live--about-to-revert t)
  (remove-hook 'after-revert-hook #'contexture-live--reverted t)
  (remove-hook 'after-save-hook #'contexture-live--written t)
  (remove-hook 'kill-buffer-hook #'contexture-live--killed t)
  (remove-hook 'after-set-visited-file-name-hook #'contexture-live--renamed t)
  (setq contexture-live--buffers
        (cl-remove-if-not #'buffer-live-p
                          (delq (current-buffer) contexture-live--buffers)))
  (when (and contexture-live--timer
             (not (or contexture-live--buffers contexture-live--copies)))
    (cancel-timer contexture-live--timer)
    (when contexture-live--next-look (cancel-timer contexture-live--next-look))
    (setq contexture-live--timer nil
          contexture-live--next-look nil)))

(defun contexture-live--drop-overlay (item)
  "Delete the overlay of ITEM, which then has no place."
  (when (overlayp (contexture-live--item-overlay item))
    (delete-overlay (contexture-live--item-overlay item)))
  (setf (contexture-live--item-overlay item) 'none))

(defun contexture-live--find-item (id)
  "Return (BUFFER . ITEM) of the item ID, or nil."
  (let ((place (gethash id contexture-live--places)))
    (and (buffer-live-p (car place)) place)))

(defun contexture-live--forget-item (id)
  "Let the item ID follow no buffer any more."
  (setf (alist-get id contexture-live--copies nil t #'equal) nil)
  (pcase-let ((`(,buffer . ,item) (contexture-live--find-item id)))
    (contexture--with-live-buffer buffer
      (contexture-live--drop-overlay item)
      (remhash id contexture-live--places)
      (setq contexture-live--items (delq item contexture-live--items)
            contexture-live--new (delq item contexture-live--new))
      (unless contexture-live--items (contexture-live--release)))))

(defun contexture-live--overlay (id)
  "Return the overlay of the item ID in this buffer if it covers whole lines."
  (when-let* ((item (cdr (gethash id contexture-live--places)))
              (overlay (contexture-live--item-overlay item)))
    (and (overlayp overlay)
         (eq (overlay-buffer overlay) (current-buffer))
         (not (overlay-get overlay 'contexture-partial))
         overlay)))

;;; Where live items are

;; Finds the places of live items in buffers: items that were just taken
;; from a buffer, and items that follow a visited file according to the
;; server, whoever added them.  An item gets a place where the buffer has
;; its exact text or, in an edited buffer, the lines that have it in the
;; file.  The code for buffers that are reverted, renamed or killed is here,
;; too.

(defvar contexture-live--captured (make-hash-table :test #'eq :weakness 'key)
  "Hash table from captured texts to their bounds, pairs of markers.")

(defvar contexture-live--claimed (make-hash-table :test #'equal)
  "Hash table from (CONTEXT . VERSION) to t or a timer.
VERSION comes from an addition.  The value is t if the answer came first,
and a timer if the notification came first.")

(defvar contexture-live--asking nil
  "Alist whose keys are the contexts about which the server is being asked.
The value is t, or `again' if the context changed meanwhile.")

;;;; Items that were just added

(defun contexture-live--captured (text beg end)
  "Remember that TEXT, which is about to be added, is between BEG and END."
  (puthash text (cons (copy-marker beg) (copy-marker end))
           contexture-live--captured))

(defun contexture-live--added (manager item text)
  "Let ITEM, the answer to an addition to MANAGER, follow its buffer.
TEXT is the text that was taken from there.  An item that the server read
by itself becomes known as if somebody else had added it."
  (mapc #'contexture-live--forget-item (plist-get item :evicted))
  (let* ((watching contexture--live-watching)
         (known (or (not (plist-get item :live))
                    (contexture-live--claim-captured manager item text))))
    (when watching
      (contexture-live--note-claimed manager (plist-get item :version))
      ;; The server read the file, which may be in a buffer that is edited soon.
      (unless known (contexture-live--ask-about manager)))))

(defun contexture-live--claim-captured (manager item text)
  "Let ITEM of MANAGER follow the buffer from which TEXT was taken.
Return nil if that is not possible."
  (when-let* ((bounds (and text (gethash text contexture-live--captured)))
              (buffer (marker-buffer (car bounds))))
    (remhash text contexture-live--captured)
    (with-current-buffer (or (buffer-base-buffer buffer) buffer)
      (prog1 (when (and buffer-file-name
                        (member (plist-get (plist-get item :metadata) :filename)
                                (contexture-live--names))
                        (contexture-live--claimable-p item text))
               (contexture-live--claim manager item text bounds)
               t)
        (set-marker (car bounds) nil)
        (set-marker (cdr bounds) nil)))))

(defun contexture-live--claimable-p (item text)
  "Return non-nil if the place of ITEM is known here once TEXT was added to it.
If ITEM has more lines than TEXT, it must have had a place here before, as
must the items that became part of it."
  (let ((lines (contexture-live--item-lines (plist-get item :metadata))))
    (or (null lines)
        (= (- (cdr lines) (car lines))
           (cl-count ?\n (string-remove-suffix "\n" text)))
        (cl-every #'contexture-live--overlay
                  (cons (plist-get item :id) (plist-get item :absorbed))))))

(defun contexture-live--claim (manager item text bounds)
  "Let ITEM of MANAGER follow the text between BOUNDS, which was TEXT.
If ITEM extends other items, cover them, too."
  (let* ((metadata (plist-get item :metadata))
         (lines (contexture-live--item-lines metadata))
         (ids (cons (plist-get item :id) (plist-get item :absorbed)))
         (others (delq nil (mapcar #'contexture-live--overlay ids)))
         (beg (apply #'min (marker-position (car bounds))
                     (mapcar #'overlay-start others)))
         (end (apply #'max (marker-position (cdr bounds))
                     (mapcar #'overlay-end others)))
         (held (contexture-live--item-held metadata))
         (told (list (and (null others) text) lines held nil)))
    (mapc #'contexture-live--forget-item (plist-get item :absorbed))
    (contexture-live--track (plist-get item :id) manager told
                            (and lines (list beg end (plist-get metadata :partial))))))

(defun contexture-live--item-held (metadata)
  "Return why the server cannot read an item with METADATA from its file, or nil.
The value is that of `contexture-live--held-p'."
  (and (plist-get metadata :unsaved)
       (if (plist-get metadata :modified) 'unsaved 'form)))

(defun contexture-live--item-lines (metadata)
  "Return the first and last line in METADATA as a pair, or nil."
  (when-let* ((start (plist-get metadata :start-line)))
    (cons start (or (plist-get metadata :end-line) start))))

;;;; Changes that are known from an answer

(defun contexture-live--note-claimed (manager version)
  "Record that the change that gave MANAGER its VERSION is known."
  (when version
    (let* ((key (cons manager version))
           (timer (gethash key contexture-live--claimed)))
      (if (null timer)
          (puthash key t contexture-live--claimed)
        (when (timerp timer) (cancel-timer timer))
        (remhash key contexture-live--claimed)))))

(defun contexture-live--news (manager version own)
  "Ask about MANAGER, which got VERSION, unless that change is known.
OWN is non-nil if this Emacs added an item.  Then the answer may still
come, so wait for it first."
  (let ((key (cons manager version)))
    (cond ((not own)
           (contexture-live--forget-claimed)
           (contexture-live--ask-about manager))
          ((gethash key contexture-live--claimed)
           (remhash key contexture-live--claimed))
          (t
           (puthash key
                    (run-at-time contexture-live-delay nil
                                 #'contexture-live--unclaimed key)
                    contexture-live--claimed)))))

(defun contexture-live--unclaimed (key)
  "Ask about the context of KEY, since no answer had its version."
  (remhash key contexture-live--claimed)
  (contexture-live--ask-about (car key)))

(defun contexture-live--forget-claimed ()
  "Forget the known changes, and stop waiting for answers."
  (maphash (lambda (_ timer) (when (timerp timer) (cancel-timer timer)))
           contexture-live--claimed)
  (clrhash contexture-live--claimed))

;;;; Items that the server reports

(defun contexture-live--names (&optional buffer)
  "Return a list of the names of the file that BUFFER visits, or nil.
They are its name and its true name, without symbolic links."
  (when-let* ((file (buffer-file-name buffer)))
    (delete-dups
     (list (expand-file-name file)
           (expand-file-name
            (or (buffer-local-value 'buffer-file-truename (or buffer (current-buffer)))
                file))))))

(defun contexture-live--all-names ()
  "Return the names of all visited files."
  (mapcan #'contexture-live--names (buffer-list)))

(defun contexture-live--ask-of (names)
  "Ask which live items, in any context, follow the files with NAMES."
  (when (and names (contexture-running-p))
    (contexture-request-async
     'list-items (list :filenames names)
     :success #'contexture-live--adopt-all :error #'ignore)))

(defun contexture-live--ask-about (manager)
  "Ask which items of MANAGER follow visited files.
A burst of changes costs two calls."
  (if (assoc manager contexture-live--asking)
      (setf (alist-get manager contexture-live--asking nil nil #'equal) 'again)
    (when-let* ((names (and (contexture-running-p) (contexture-live--all-names))))
      (push (cons manager t) contexture-live--asking)
      (cl-flet ((finish (then)
                  (let ((state (alist-get manager contexture-live--asking nil nil #'equal)))
                    (setf (alist-get manager contexture-live--asking nil t #'equal) nil)
                    (funcall then)
                    (when (eq state 'again) (contexture-live--ask-about manager)))))
        (contexture-request-async
         'list-items (list :manager manager :filenames names :brief t)
         :success (lambda (items)
                    (finish (lambda () (contexture-live--compare manager items))))
         :error (lambda (_) (finish #'ignore)))))))

(defun contexture-live--compare (manager items)
  "Follow ITEMS, and no others of MANAGER.
ITEMS are its live items in visited files.  Fetch the new ones, and those
that the server moved by itself."
  (let ((ids (contexture--pluck :id items)))
    (pcase-dolist (`(,_ . ,item) (hash-table-values contexture-live--places))
      (when (and (equal (contexture-live--item-manager item) manager)
                 (not (member (contexture-live--item-id item) ids))
                 ;; The server may follow the file under another name.  The buffer
                 ;; may have to give the item to it again: once it is edited.
                 (not (contexture-live--without-file-p item)))
        (contexture-live--forget-item (contexture-live--item-id item))))
    (when-let* ((new (cl-loop for item in items
                              unless (contexture-live--known-p manager item)
                              collect (plist-get item :id))))
      (contexture-request-async
       'list-items (list :manager manager :ids new)
       :success (lambda (items)
                  (contexture-live--adopt-all
                   (mapcar (lambda (item) (append item (list :manager manager)))
                           items)))
       :error #'ignore))))

(defun contexture-live--without-file-p (item)
  "Return non-nil if the file of ITEM's buffer is gone."
  (when-let* ((buffer (car (contexture-live--find-item (contexture-live--item-id item))))
              (file (buffer-local-value 'contexture-live--file buffer)))
    (contexture-live--gone-p file)))

(defun contexture-live--gone-p (file)
  "Return non-nil if there is no FILE, which a buffer visits, on this machine."
  (not (or (contexture-outside--taken-p file) (file-exists-p file))))

(defun contexture-live--known-p (manager item)
  "Return non-nil if ITEM of MANAGER is known here, in its file and on its lines.
An item of which the server is certain must also have a place here."
  (pcase-let ((`(,buffer . ,known) (contexture-live--find-item (plist-get item :id)))
              (metadata (plist-get item :metadata)))
    (when known
      (setf (contexture-live--item-manager known) manager)
      (and (member (plist-get metadata :filename) (contexture-live--names buffer))
           (equal (nth 1 (contexture-live--item-told known))
                  (contexture-live--item-lines metadata))
           (or (eq (plist-get item :state) :stale)
               (null (contexture-live--item-lines metadata))
               (contexture-live--placed-p known))))))

(defun contexture-live--edited-names ()
  "Return the names of the files whose buffers have unsaved edits."
  (unless contexture--live-off
    (cl-loop for buffer in (buffer-list)
             when (buffer-modified-p buffer)
             append (contexture-live--names buffer))))

(defun contexture-live--adopt-new (items)
  "Let those of ITEMS that are not known follow their buffers.
Then send the unsaved texts of these buffers to the server."
  (with-demoted-errors "Contexture: %S"
    (contexture-live--adopt-all
     (cl-remove-if (lambda (item) (contexture-live--find-item (plist-get item :id)))
                   items)))
  (contexture-live--push))

(defun contexture-live--adopt-all (items)
  "Let ITEMS, which have their texts and managers, follow their buffers."
  (dolist (buffer (buffer-list))
    (when-let* ((names (contexture-live--names buffer)))
      (let ((difference (thunk-delay (contexture-live--difference
                                      (contexture-live--text-before)))))
        (dolist (item items)
          (when (and (plist-get item :live)
                     (member (plist-get (plist-get item :metadata) :filename) names))
            (with-current-buffer buffer
              (contexture--widened
                (contexture-live--adopt item difference)))))))))

(defun contexture-live--text-before ()
  "Return the text of this buffer before it was reverted, or nil.
It counts until the buffer is edited."
  (pcase contexture-live--before
    (`(,tick . ,text) (and (eql tick (buffer-chars-modified-tick)) text))))

(defun contexture-live--adopt (item difference)
  "Let ITEM follow this buffer, which is widened, if its text is there.
If the buffer has unsaved edits, the text may be edited, too; DIFFERENCE is
a thunk for the value of `contexture-live--difference'.  If the place of
ITEM among these edits is uncertain, mark it as stale.  If the buffer has no
edits, ITEM becomes stale once it has some.  What the server does not find in
the file is not looked for in a buffer with the same text: the server knows
what was around ITEM, so that it takes no copy for it."
  (let* ((metadata (plist-get item :metadata))
         (text (string-replace "\r\n" "\n" (plist-get item :content)))
         (lines (contexture-live--item-lines metadata))
         (held (contexture-live--item-held metadata))
         (known (contexture-live--known-here (plist-get item :id)))
         (placed (and known (contexture-live--placed-p known)))
         (reverted (and (contexture-live--text-before) t))
         (edited (and lines (not placed) (or (buffer-modified-p) reverted)))
         (doubtful (and (eq (plist-get item :state) :stale)
                        (null (contexture-live--held-p))))
         (bounds (cond ((null lines) (cons (point-min) (point-max)))
                       (doubtful nil)
                       (edited (contexture-live--bounds-edited
                                text metadata (thunk-force difference)))
                       ((and placed reverted) nil) ; found already
                       (placed
                        ;; A copy elsewhere is not the text, which was edited or deleted.
                        (let ((found (contexture-live--bounds text metadata)))
                          (cond ((and found (= (line-number-at-pos (car found)) (car lines)))
                                 found)
                                ;; Undo may bring back lines of the file, which are elsewhere here.
                                ((and (buffer-modified-p) (null held) (thunk-force difference))
                                 (contexture-live--bounds-edited
                                  text metadata (thunk-force difference))))))
                       (t (contexture-live--bounds text metadata))))
         (place (if (consp bounds)
                    (and lines (list (car bounds) (cdr bounds)
                                     (plist-get metadata :partial)))
                  (list nil nil (plist-get metadata :partial)))))
    (when (and reverted placed (not (consp bounds)))
      ;; The server is told again what became of it.
      (setf (contexture-live--item-told known)
            (list text lines held (plist-get metadata :stale)))
      (cl-pushnew known contexture-live--new))
    (when (or (consp bounds)
              (and reverted edited)
              ;; Another editor may have the text in its buffer.
              (and (not (and known (contexture-live--item-overlay known)
                             (not (eq (contexture-live--item-overlay known) 'none))))
                   (or (eq (plist-get item :state) :stale)
                       (not (eq held 'unsaved)))))
      (contexture-live--track
       (plist-get item :id) (plist-get item :manager)
       (cond ((not (or edited (consp bounds)))
              ;; The file counts until this buffer is edited.
              (list nil lines nil nil))
             ((or (null lines) edited) (list text lines held (plist-get metadata :stale)))
             (t (list (buffer-substring-no-properties (car bounds) (cdr bounds))
                      lines held (plist-get metadata :stale))))
       place)
      (when (and lines (not placed))
        (contexture-live--note-copies (contexture-live--known-here (plist-get item :id))
                                      text (and edited (thunk-force difference))
                                      (or doubtful (and reverted (not (consp bounds)))))))))

(defun contexture-live--known-here (id)
  "Return the structure of the item ID if it follows this buffer, or nil."
  (pcase (contexture-live--find-item id)
    (`(,buffer . ,item) (and (eq buffer (current-buffer)) item))))

(defun contexture-live--placed-p (item)
  "Return non-nil if ITEM, which is known here, has a place in its buffer."
  (let ((overlay (contexture-live--item-overlay item)))
    (and (overlayp overlay) (overlay-buffer overlay))))

(defun contexture-live--note-copies (item text difference doubtful)
  "Note on the overlay of ITEM whether the file has TEXT more than once.
If it has, a copy that is found later may be another one; so it may be if the
place of ITEM is DOUBTFUL.  DIFFERENCE is the value of
`contexture-live--difference'."
  (when-let* ((overlay (contexture-live--item-overlay item)))
    (overlay-put overlay 'contexture-copied
                 (or doubtful
                     (and difference (contexture-live--copied-p text (car difference)))))))

(defun contexture-live--bounds (text metadata)
  "Return the bounds of TEXT on the lines that METADATA names.
If it is not there, return those of its only copy in this buffer, or nil.
At the named lines, TEXT may lack its final newline."
  (let ((place (contexture--line-position (plist-get metadata :start-line)))
        (end (progn (contexture--line-position
                     (cdr (contexture-live--item-lines metadata)))
                    (line-end-position)))
        (short (string-remove-suffix "\n" text)))
    (goto-char place)
    (cond ((contexture-live--at-p text place t) (cons place (+ place (length text))))
          ((string-empty-p short) nil)
          ((contexture-live--at-p short place t) (cons place (+ place (length short))))
          ((and (plist-get metadata :partial)
                (let ((case-fold-search nil)) (search-forward short (max end place) t)))
           (cons (match-beginning 0) (match-end 0)))
          (t (contexture-live--find text place (plist-get metadata :partial))))))

;;;; Places in edited buffers

;; A buffer may have edits from before its items were known here.  The
;; lines that it shares with its file show where the other lines of the
;; file are in it.

(defun contexture-live--bounds-edited (text metadata difference)
  "Return the bounds in this edited buffer of the text that is TEXT in its file.
METADATA names the lines in the file.  The bounds are equal if the text
was deleted; the value is nil if they are uncertain.  DIFFERENCE is the
value of `contexture-live--difference'."
  (let* ((file-text (car difference))
         (place (and difference (contexture-live--place-in-file text metadata file-text))))
    (cond ((null place) (contexture-live--bounds text metadata))
          ((contexture-live--place-now place (cdr difference)))
          ((not (contexture-live--copied-p text file-text))
           (contexture-live--find text (point-max) (plist-get metadata :partial))))))

(defun contexture-live--difference (&optional before)
  "Return how this buffer, which is widened, differs from its file, or nil.
With BEFORE, a text, return how it differs from that.

The value is a list (TEXT OLD NEW MATCHES): the text of the file, vectors
of the lines of file and buffer, and a vector that has, for each line of
the file, the number of the same line of the buffer, or nil.  Files are
not read if that takes a handler, as on other machines."
  (when-let* ((text (or before (contexture-live--file-text))))
    (let ((old (vconcat (split-string text "\n")))
          (new (vconcat (split-string (buffer-substring-no-properties (point-min) (point-max))
                                      "\n"))))
      (list text old new (contexture-live--matches old new)))))

(defun contexture-live--file-text ()
  "Return the text of this buffer's file, or nil if it cannot be read here."
  (let ((file buffer-file-name)
        (coding buffer-file-coding-system))
    (unless (or buffer-file-format
                (find-file-name-handler file 'insert-file-contents))
      (ignore-errors
        (with-temp-buffer
          (let ((coding-system-for-read coding))
            (contexture--insert-file file))
          (buffer-string))))))

(defun contexture-live--copied-p (text file-text)
  "Return non-nil if TEXT is in FILE-TEXT more than once."
  (when-let* ((first (and (not (string-empty-p text)) (string-search text file-text))))
    (string-search text file-text (1+ first))))

(defun contexture-live--place-in-file (text metadata file-text)
  "Return the place in FILE-TEXT of TEXT, which has METADATA, or nil.
It is a list (FIRST COLUMN LAST END): the numbers, from 0, of the first and
last line, the column at which the text begins, and that at which it ends,
or nil if it ends with the newline."
  (with-temp-buffer
    (insert file-text)
    (when-let* ((bounds (contexture-live--bounds text metadata)))
      (pcase-let ((`(,beg . ,end) bounds)
                  (`(,first . ,last) (contexture-live--lines (car bounds) (cdr bounds)
                                                             (cons (point-min) 1))))
        (list (1- first) (- beg (contexture--line-position first))
              (1- last) (unless (and (> end beg) (eq (char-before end) ?\n))
                          (- end (contexture--line-position last))))))))

(defun contexture-live--place-now (place lines)
  "Return the bounds in this buffer of the text at PLACE in its file, or nil.
PLACE is a value of `contexture-live--place-in-file', and LINES is a list
\(OLD NEW MATCHES) as in `contexture-live--difference'."
  (pcase-let* ((`(,first ,column ,last ,end-column) place)
               (`(,old ,new . ,_) lines)
               (beg (contexture-live--line-now 'first first last lines))
               (end (contexture-live--line-now 'last first last lines)))
    (cond ((not (and beg end)) nil)
          ((> beg end)
           (and (= beg (1+ end))
                (let ((position (contexture--line-position (1+ beg))))
                  (cons position position))))
          (t
           (let ((from (contexture-live--column-now column (aref old first) (aref new beg)))
                 (to (cond ((null end-column) 0)
                           ((= end-column (length (aref old last))) (length (aref new end)))
                           (t (contexture-live--column-now
                               end-column (aref old last) (aref new end))))))
             (and from to
                  (let ((from (+ from (contexture--line-position (1+ beg))))
                        (to (+ to (contexture--line-position (+ end (if end-column 1 2))))))
                    (and (< from to) (cons from to)))))))))

(defun contexture-live--line-now (edge first last lines)
  "Return the number of the buffer's line that was an item's line, or nil.
FIRST and LAST are the item's lines in the file.  EDGE is `first' or
`last', the line to look for.  If that line was deleted, return the line
after or before it, so that the item has what is left of its text.
LINES is as in `contexture-live--place-now'."
  (pcase-let ((`(,old ,new ,matches) lines)
              (line (if (eq edge 'first) first last)))
    (or (aref matches line)
        ;; The lines of the file between OPEN and CLOSE were replaced by those
        ;; of the buffer from BEG to before END.
        (let* ((open (cl-loop for n downfrom (1- line) to 0 when (aref matches n) return n
                              finally return -1))
               (close (cl-loop for n from (1+ line) below (length old)
                               when (aref matches n) return n
                               finally return (length old)))
               (beg (if (< open 0) 0 (1+ (aref matches open))))
               (end (if (< close (length old)) (aref matches close) (length new))))
          (cond ((= beg end) (if (eq edge 'first) end (1- beg)))
                ((= (- end beg) (- close open 1)) (+ beg (- line open 1)))
                ((contexture-live--similar-line
                  line (number-sequence (1+ open) (1- close)) old
                  (number-sequence beg (1- end)) new))
                ;; Only lines of the item were replaced, but the first or last too.
                ((cl-loop for n from beg below end thereis (string-blank-p (aref new n))) nil)
                ((and (eq edge 'first) (= line (1+ open)) (<= close last)) beg)
                ((and (eq edge 'last) (= line (1- close)) (>= open first)) (1- end)))))))

(defun contexture-live--similar-line (line here old there new)
  "Return the number of the only line in THERE that is like LINE, or nil.
LINE is one of HERE, numbers of lines in OLD; THERE are numbers of lines in
NEW.  No other line of HERE may be like the line returned."
  (let ((found (cl-remove-if-not
                (lambda (n) (contexture-live--similar-p (aref old line) (aref new n))) there)))
    (and found (null (cdr found))
         (cl-notany (lambda (n)
                      (and (/= n line)
                           (contexture-live--similar-p (aref old n) (aref new (car found)))))
                    here)
         (car found))))

(defun contexture-live--similar-p (a b)
  "Return non-nil if the lines A and B share most of their text at their ends."
  (let* ((a (contexture--trim a))
         (b (contexture--trim b))
         (shared (contexture-live--shared-ends a b)))
    (and (not (string-empty-p a))
         (>= (* 2 (+ (car shared) (cdr shared))) (max (length a) (length b))))))

(defun contexture-live--shared-ends (a b)
  "Return how many characters A and B share at their beginnings and ends.
The value is a pair; no character counts twice."
  (cl-flet ((shared (a b)
              (let ((order (compare-strings a nil nil b nil nil)))
                (if (eq order t) (length a) (1- (abs order))))))
    (let ((beg (shared a b)))
      (cons beg (shared (reverse (substring a beg)) (reverse (substring b beg)))))))

(defun contexture-live--column-now (column old new)
  "Return the column of the line NEW that was COLUMN of the line OLD, or nil."
  (pcase-let ((`(,beg . ,end) (contexture-live--shared-ends old new)))
    (cond ((<= column beg) column)
          ((>= column (- (length old) end)) (+ column (- (length new) (length old)))))))

(defun contexture-live--matches (old new)
  "Return a vector that has, for each line of OLD, its number in NEW or nil.
OLD and NEW are vectors of lines."
  (let ((matches (make-vector (length old) nil)))
    (contexture-live--match matches old 0 (length old) new 0 (length new))
    matches))

(defun contexture-live--match (matches old a b new c d)
  "Set MATCHES for the lines of OLD from A to B that are in NEW from C to D.
Equal lines at both ends match.  So do most lines that each side has
exactly once.  The lines between matches are compared in the same way."
  (while (and (< a b) (< c d) (string= (aref old a) (aref new c)))
    (aset matches a c)
    (cl-incf a)
    (cl-incf c))
  (while (and (< a b) (< c d) (string= (aref old (1- b)) (aref new (1- d))))
    (aset matches (cl-decf b) (cl-decf d)))
  (when-let* ((pairs (and (< a b) (< c d)
                          (contexture-live--rising
                           (contexture-live--single-lines old a b new c d)))))
    (pcase-dolist (`(,line . ,same) (append pairs (list (cons b d))))
      (contexture-live--match matches old a line new c same)
      (when (< line b) (aset matches line same))
      (setq a (1+ line)
            c (1+ same)))))

(defun contexture-live--single-lines (old a b new c d)
  "Return the lines that OLD from A to B and NEW from C to D have exactly once.
Each is a pair of its numbers in OLD and NEW, in the order of OLD."
  (cl-flet ((index (lines from to)
              (let ((table (make-hash-table :test #'equal)))
                (cl-loop for n from from below to
                         do (puthash (aref lines n)
                                     (if (gethash (aref lines n) table) 'several n) table))
                table)))
    (let ((here (index old a b))
          (there (index new c d)))
      (cl-loop for n from a below b
               for same = (gethash (aref old n) there)
               when (and (integerp same) (eql n (gethash (aref old n) here)))
               collect (cons n same)))))

(defun contexture-live--rising (pairs)
  "Return the longest sublist of PAIRS whose cdrs rise.
PAIRS are sorted by their cars."
  (let ((ends (make-vector (length pairs) nil)) ; for each length, that with the lowest end
        (count 0))
    (dolist (pair pairs)
      (let ((low 0) (high count))
        (while (< low high)
          (let ((middle (/ (+ low high) 2)))
            (if (< (cdar (aref ends middle)) (cdr pair))
                (setq low (1+ middle))
              (setq high middle))))
        (aset ends low (cons pair (and (> low 0) (aref ends (1- low)))))
        (setq count (max count (1+ low)))))
    (and (> count 0) (reverse (aref ends (1- count))))))

;;;; Buffers that are reverted, killed or renamed

(defun contexture-live--misread-p (held)
  "Return non-nil if the server would take this buffer's file for other text.
HELD is the value of `contexture-live--held-p'.  Bytes in another encoding may
be UTF-8, too, as those in seven bits are."
  (and (eq held 'form)
       buffer-file-coding-system
       (not (contexture-outside--taken-p contexture-live--file))
       (contexture--widened
         (let* ((text (buffer-substring-no-properties (point-min) (point-max)))
                (read (decode-coding-string
                       (encode-coding-string
                        text (coding-system-change-eol-conversion buffer-file-coding-system 'unix))
                       'utf-8-unix)))
           (not (or (equal read text)
                    (string-match-p "[\0\x3fff80-\x3fffff]" read)))))))

(defun contexture-live--give-back (&optional misread)
  "Have the server read the items of this buffer from the file alone again.
If that were MISREAD, they become copies."
  (contexture-live--tell
   (cl-loop for item in contexture-live--items
            for told = (contexture-live--item-told item)
            for saved = (contexture-live--item-saved item)
            when (or (nth 2 told) (nth 3 told))
            collect (append
                     (and misread '(:live :false))
                     (if saved (contexture-live--update item saved t)
                       `(:id ,(contexture-live--item-id item)
                         :manager ,(contexture-live--item-manager item)
                         :metadata (:unsaved nil :modified nil
                                    ;; On another machine, the server cannot look.
                                    :stale ,(and (contexture--remote-p contexture-live--file)
                                                 "its text was not saved"))))))))

(defun contexture-live--about-to-revert ()
  "Keep the text of this buffer if the server cannot read it from its file.
It shows which of several copies of an item's text are left after the revert."
  (setq contexture-live--before
        (or (not (eq (contexture-live--held-p) 'form))
            (contexture--widened
              (buffer-substring-no-properties (point-min) (point-max))))))

(defun contexture-live--reverting-p ()
  "Return non-nil if this buffer is being reverted.
Then its overlays mean nothing: everything between the first and the last
difference is replaced at once.  Where its items are now is for the server
to say, which knows more of the text around them."
  (and revert-buffer-in-progress-p contexture-live--before (atom contexture-live--before)))

(defun contexture-live--reverted ()
  "Find the items of this buffer again, since its text was replaced."
  (contexture-live--give-back)
  (dolist (item contexture-live--items)
    (contexture-live--drop-overlay item)
    (setf (contexture-live--item-told item) nil))
  ;; Only now are there no old places of which the server could be told.
  (setq contexture-live--before
        (and (stringp contexture-live--before)
             (cons (buffer-chars-modified-tick) contexture-live--before)))
  (contexture-live--ask-of (contexture-live--names)))

(defun contexture-live--written ()
  "Tell the server what was saved, while the file has it.
Find those items of this buffer again that lost their places: the server
follows the file, which has the buffer's text now."
  (contexture-live--push)
  (when (cl-some (lambda (item) (nth 3 (contexture-live--item-told item)))
                 contexture-live--items)
    (contexture-live--ask-of (contexture-live--names))))

(defun contexture-live--killed ()
  "Send the last changes of a buffer that is going away.
Edits that were not saved are lost."
  (let ((held (contexture-live--held-p)))
    ;; A file in another form than UTF-8 has the text, too.
    (unless (contexture-live--modified-p held) (contexture-live--push))
    (when held (contexture-live--give-back (contexture-live--misread-p held))))
  (contexture-live--release))

(defun contexture-live--renamed ()
  "Let the items of this buffer follow its file if the file was renamed.
If the text was only written to another file, they stay with the first."
  (let ((old contexture-live--file)
        (new (and buffer-file-name (expand-file-name buffer-file-name))))
    (cond ((equal old new))
          ((and new (contexture-live--gone-p old))
           (setq contexture-live--file new
                 contexture-live--seen nil)
           (dolist (item contexture-live--items)
             (setf (contexture-live--item-told item) nil)))
          (t
           (contexture-live--give-back)
           (contexture-live--release)
           (contexture-live--opened)))))

(defun contexture-live--opened ()
  "Ask which live items follow the file that this buffer visits.
Exchange with its machine if `contexture-sync-hosts' allows it."
  (contexture-live--follow (contexture-live--names))
  (contexture-live--exchange (list (current-buffer))))

(defun contexture-live--exchange (buffers)
  "Exchange with the machines of BUFFERS that `contexture-sync-hosts' allows."
  (when contexture-sync-hosts
    (require 'contexture-sessions)
    (dolist (buffer buffers)
      (with-current-buffer buffer
        (when buffer-file-name
          (contexture-sync--remote))))))

;;;; Following the server

(defun contexture-live--connected ()
  "Follow the visited files that have items on the server just reached."
  (setq contexture-live--asking nil
        contexture--live-watching nil)
  (contexture-live--forget-claimed)
  (add-hook 'find-file-hook #'contexture-live--opened)
  (when (contexture-running-p)
    (contexture-live--follow (contexture-live--all-names))
    ;; Also with those that were opened before the server was reached.
    (contexture-live--exchange (buffer-list))))

(defun contexture-live--follow (names)
  "Follow the items of the files with NAMES, if there are any.
Subscribe to the server's changes the first time.  Do nothing while
`contexture--live-off' is non-nil."
  (when (and names (not contexture--live-off) (contexture-running-p))
    (unless contexture--live-watching
      (setq contexture--live-watching t)
      (contexture--subscribe contexture--connection))
    (contexture-live--ask-of names)))

(defun contexture-live--disconnected ()
  "Let no item follow a buffer, since the connection was closed."
  (setq contexture--live-watching nil
        contexture-live--copies nil)
  (remove-hook 'find-file-hook #'contexture-live--opened)
  (dolist (buffer contexture-live--buffers)
    (contexture--with-live-buffer buffer
      (contexture-live--release))))

(defun contexture-live--changed (method params)
  "Handle the server's notification METHOD with PARAMS.
If a context changed, ask for its live items, unless they only followed
the files that they had before.  If the server wants the
text of a file, send the unsaved text, if there is any."
  (pcase method
    ('context-changed
     (unless (plist-get params :followed)
       (contexture-live--news (plist-get params :manager) (plist-get params :version)
                              (and (plist-get params :own)
                                   (equal (contexture--name (plist-get params :method))
                                          "add-item")))))
    ('text-wanted
     (let ((path (plist-get params :path)))
       (contexture-live--push)
       (let ((contexture--own-call t))
         (contexture-request-async
          'give-result
          (append (list :question (plist-get params :question))
                  (when (and path (member path (contexture-live--edited-names)))
                    ;; The server does not know of `auth-sources'.
                    (let* ((secret (contexture--secret-file-p path))
                           (text (unless secret (contexture-live--unsaved path))))
                      (list (if text :content :error)
                            (or text (if secret "it may hold secrets"
                                       "the file has changed since"))))))))))))

(defun contexture-live--unsaved (path)
  "Return the text of the modified buffer that visits the file at PATH, or nil.
This does not read the disk, so PATH must be free of symbolic links."
  (cl-loop for buffer in (buffer-list)
           for name = (buffer-local-value 'buffer-file-name buffer)
           for true = (buffer-local-value 'buffer-file-truename buffer)
           when (and name (buffer-modified-p buffer)
                     (or (string= path name)
                         (and true (string= path (expand-file-name true))))
                     ;; What another program saved is newer.
                     (not (with-current-buffer buffer (contexture-live--conflict-p))))
           return (with-current-buffer buffer
                    (contexture--widened
                      (buffer-substring-no-properties (point-min) (point-max))))))

(provide 'contexture-marks)
;;; contexture-marks.el ends here
