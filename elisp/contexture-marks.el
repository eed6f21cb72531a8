;;; contexture-marks.el --- Marks on what is in a context  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The part of `contexture-mode' that marks lines.  Each item that came
;; from a buffer has one overlay there, over whole lines.  The server's
;; first answer says on which lines; from then on Emacs moves the overlay
;; with the text, and later answers only change its help text, unless the
;; item's lines have changed.
;;
;; An item that is live has an overlay anyway, see contexture-live.el; then
;; the mark is that one.
;;
;; The mark is a line prefix, so that one overlay marks all its lines.
;; It takes no room in the text: it is drawn in the fringe or, on
;; terminals, in the margin, if nothing else uses that and while there are
;; marks.

;;; Code:

(require 'cl-lib)
(require 'eldoc)
(require 'contexture)
(require 'contexture-overlay)
(eval-when-compile (require 'subr-x))

(defvar contexture-mode)

(declare-function contexture-live--overlay "contexture-live" (id))

(defcustom contexture-mark-face nil
  "Face of text that is in the context, in buffers with `contexture-mode'."
  :type '(choice (const :tag "None" nil) face)
  :group 'contexture)

(defface contexture-mark '((t :inherit success))
  "Face of the mark, in fringe or margin, beside text in the context."
  :group 'contexture)

(defface contexture-mark-stale '((t :inherit warning))
  "Face of the mark of an item whose file has changed since."
  :group 'contexture)

(defvar contexture-marks--fetching (make-hash-table :test #'equal)
  "Hash table from each context that is being fetched to t.
The value `again' means that the context changed meanwhile.")

(defvar contexture-marks--stale (make-hash-table :test #'equal)
  "Hash table from a context, a name or a list, to its number of stale items.")

(defvar-local contexture-marks--margin nil
  "Former left margin while the marks use it, else nil.
The value is a list of one list, which holds the former local value of
`left-margin-width', or is empty if there was none.")

(defvar-local contexture-marks--eldoc-was-off nil
  "Non-nil if ElDoc was turned on in this buffer for the marks.")

(defconst contexture-marks--properties
  '(contexture-mark contexture-lines face help-echo before-string line-prefix)
  "Properties that make an overlay a visible mark.")

(put 'contexture-marks--margin 'permanent-local t)
(put 'contexture-marks--eldoc 'permanent-local-hook t)
(put 'contexture-marks--fetch 'permanent-local-hook t)
(put 'contexture-marks--reverted 'permanent-local-hook t)

(when (fboundp 'define-fringe-bitmap)
  (define-fringe-bitmap 'contexture-mark [#b11100000] nil nil '(center t)))

;;;; On and off

(defun contexture-marks--turn-on ()
  "Mark this buffer from now on."
  (add-hook 'after-save-hook #'contexture-marks--fetch nil t)
  (add-hook 'after-revert-hook #'contexture-marks--reverted nil t)
  (add-hook 'eldoc-documentation-functions #'contexture-marks--eldoc 90 t)
  (when (and global-eldoc-mode (not eldoc-mode))
    (eldoc-mode 1)
    (setq contexture-marks--eldoc-was-off t))
  (contexture-marks--fetch))

(defun contexture-marks--turn-off ()
  "Undo what `contexture-marks--turn-on' and the marks have done."
  (contexture-marks--clear)
  (remove-hook 'after-save-hook #'contexture-marks--fetch t)
  (remove-hook 'after-revert-hook #'contexture-marks--reverted t)
  (remove-hook 'eldoc-documentation-functions #'contexture-marks--eldoc t)
  (when contexture-marks--eldoc-was-off
    (kill-local-variable 'contexture-marks--eldoc-was-off)
    (eldoc-mode -1)))

(defun contexture-marks--buffers (&optional context)
  "Return the buffers with the mode, those with CONTEXT if it is given."
  (cl-remove-if-not
   (lambda (buffer)
     (and (buffer-local-value 'contexture-mode buffer)
          (or (null context)
              (with-current-buffer buffer
                (equal context (contexture--known-context))))))
   (buffer-list)))

(defun contexture-marks--clear-all ()
  "Remove all marks, since no server says whether they are still right."
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
  "Fetch a context that is shown if METHOD with PARAMS says that it changed."
  (when (eq method 'context-changed)
    (let ((manager (plist-get params :manager))
          (contexts (hash-table-keys contexture-marks--fetching)))
      (dolist (buffer (contexture-marks--buffers))
        (push (with-current-buffer buffer (contexture--known-context)) contexts))
      (dolist (context (delete-dups contexts))
        (when (and context (contexture--of-context-p manager context))
          (contexture-marks--fetch context))))))

(defun contexture-marks--fetch-all ()
  "Fetch the contexts of all buffers that have the mode."
  (dolist (buffer (contexture-marks--buffers))
    (with-current-buffer buffer (contexture-marks--fetch))))

(defun contexture-marks--fetch (&optional context)
  "Fetch the items of CONTEXT, by default this buffer's, and mark them.
Until the answer comes, a change is only noted, so that many changes in a
row cost two calls.  This starts no server."
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
  "Mark the ITEMS of MANAGER in all buffers whose context it is."
  (when (contexture-running-p)
    (puthash manager (cl-count-if (lambda (item) (plist-get (plist-get item :metadata) :stale))
                                  items)
             contexture-marks--stale)
    (force-mode-line-update t)
    (dolist (buffer (contexture-marks--buffers manager))
      (with-current-buffer buffer
        (with-demoted-errors "Contexture: %S"
          (contexture-marks--show manager items))))))

;;;; Which items, which lines

(defun contexture-marks--items-here (items)
  "Return the ITEMS that came from this buffer."
  (let* ((base (contexture--base-buffer))
         (name (buffer-name base))
         (file (buffer-file-name base))
         (files (and file
                     (list (expand-file-name file)
                           (expand-file-name
                            (buffer-local-value 'buffer-file-truename base))))))
    (cl-remove-if-not
     (lambda (item)
       (let* ((metadata (plist-get item :metadata))
              (source (plist-get metadata :filename)))
         (cond (source (member source files))
               (file nil)
               (t (equal (plist-get metadata :buffer) name)))))
     items)))

(defun contexture-marks--bounds (metadata)
  "Return the bounds of the lines that METADATA names, or nil.
For a whole buffer or file, that is the first line.  The buffer must be
widened; this moves point."
  (let* ((start (or (plist-get metadata :start-line) 1))
         (end (or (plist-get metadata :end-line) start)))
    (goto-char (point-min))
    (when (and (= 0 (forward-line (1- start)))
               (not (and (eobp) (> start 1))))
      (let ((beg (point)))
        (forward-line (- (1+ end) start))
        (when (contexture-marks--whole-p metadata start)
          (goto-char beg)
          (forward-line))
        (cons beg (point))))))

(defun contexture-marks--whole-p (metadata start)
  "Return non-nil if METADATA covers all lines from START to point."
  (and (= start 1)
       (memq (plist-get metadata :origin) '(:buffer :file))
       (or (eobp) (null (plist-get metadata :start-line)))))

;;;; Overlays

(defun contexture-marks--overlays ()
  "Return all marks of this buffer."
  (save-restriction
    (widen)
    (cl-remove-if-not (lambda (overlay) (overlay-get overlay 'contexture-mark))
                      (overlays-in (point-min) (point-max)))))

(defun contexture-marks--show (manager items)
  "Mark in this buffer the ITEMS of MANAGER that came from it.
Existing marks stay where they are now."
  (let ((old (make-hash-table :test #'equal))
        (here (contexture-marks--items-here items)))
    (dolist (overlay (contexture-marks--overlays))
      (puthash (overlay-get overlay 'contexture-mark) overlay old))
    (if here (contexture-marks--take-margin) (contexture-marks--free-margin))
    (save-excursion
      (save-restriction
        (widen)
        (dolist (item here)
          (let ((overlay (contexture-marks--place
                          item (gethash (plist-get item :id) old))))
            (when overlay
              (remhash (plist-get item :id) old)
              (contexture-marks--dress overlay manager item))))))
    (maphash (lambda (_ overlay) (contexture-marks--remove overlay)) old)))

(defun contexture-marks--remove (overlay)
  "Remove the mark OVERLAY; one of a live item is only hidden."
  (if (overlay-get overlay 'contexture-live)
      (dolist (property contexture-marks--properties)
        (overlay-put overlay property nil))
    (delete-overlay overlay)))

(defun contexture-marks--place (item overlay)
  "Return the mark for ITEM, or nil if its lines do not exist.
That is the overlay that a live item has already.  Else reuse OVERLAY if
it is non-nil and ITEM's lines are still the same."
  (let* ((metadata (plist-get item :metadata))
         (id (plist-get item :id))
         (lines (cons (plist-get metadata :start-line)
                      (plist-get metadata :end-line)))
         (live (and (featurep 'contexture-live) (contexture-live--overlay id)))
         (new (cond (live)
                    ((and overlay (not (overlay-get overlay 'contexture-live))
                          (equal lines (overlay-get overlay 'contexture-lines)))
                     overlay)
                    (t (contexture-marks--make metadata)))))
    (when new
      (overlay-put new 'contexture-mark id)
      (overlay-put new 'contexture-lines lines)
      (when (and overlay (not (eq overlay new)))
        (contexture-marks--remove overlay)))
    new))

(defun contexture-marks--make (metadata)
  "Return a new overlay over the lines that METADATA names, or nil."
  (when-let* ((bounds (contexture-marks--bounds metadata)))
    (contexture-overlay--make (car bounds) (cdr bounds))))

(defun contexture-marks--dress (overlay manager item)
  "Give OVERLAY the look and the help text of ITEM of MANAGER."
  ;; Our prefix would hide one that shows indentation, such as that of
  ;; `org-indent-mode'.  There, mark only the first line.
  (let ((glyph (contexture-marks--glyph item))
        (taken (text-property-not-all (overlay-start overlay)
                                      (overlay-end overlay)
                                      'line-prefix nil)))
    (overlay-put overlay 'face contexture-mark-face)
    (overlay-put overlay 'help-echo (contexture-marks--help manager item))
    (overlay-put overlay 'before-string (and taken glyph))
    (overlay-put overlay 'line-prefix (and (not taken) glyph))))

(defun contexture-marks--glyph (item)
  "Return the string that shows ITEM's mark beside the text."
  (let ((face (if (member (contexture-marks--state item) '("stale" "missing"))
                  'contexture-mark-stale
                'contexture-mark)))
    (concat
     (when (fboundp 'define-fringe-bitmap)
       (propertize " " 'display (list 'left-fringe 'contexture-mark face)))
     (when contexture-marks--margin
       (propertize " " 'display
                   (list '(margin left-margin)
                         (propertize (if (char-displayable-p ?┃) "┃" "|")
                                     'face face)))))))

(defun contexture-marks--help (manager item)
  "Return the help text for ITEM of MANAGER."
  (contexture--format "in context %s (%s, %s, %s)"
          (let ((manager (or (plist-get item :manager) manager)))
            (gethash manager contexture--labels manager))
          (plist-get item :id)
          (contexture--count (or (plist-get item :tokens) 0) "token")
          (contexture-marks--state item)))

(defun contexture-marks--state (item)
  "Return the word for the state of ITEM."
  (contexture--item-state (or (plist-get item :state) :fresh)
                          (plist-get item :metadata)
                          (plist-get item :timestamp)))

(defun contexture-marks--eldoc (&rest _)
  "Return the help text for the items on point's line, or nil."
  (let* ((beg (line-beginning-position))
         (overlays (cl-remove-if-not
                    (lambda (overlay)
                      (and (overlay-get overlay 'contexture-mark)
                           (< (overlay-start overlay) (overlay-end overlay))))
                    (overlays-in beg (min (point-max) (1+ (line-end-position)))))))
    (when overlays
      (mapconcat (lambda (overlay) (overlay-get overlay 'help-echo))
                 (sort overlays
                       (lambda (a b) (< (overlay-start a) (overlay-start b))))
                 "; "))))

;;;; The margin of a terminal

(defun contexture-marks--take-margin ()
  "Use the left margin for marks if they need it and it is free."
  (cond (contexture-marks--margin
         ;; A change of the major mode resets the variable.
         (when (eql 0 left-margin-width) (setq left-margin-width 1)))
        ((and (contexture-marks--terminal-p)
              (eql 0 (or left-margin-width 0))
              (cl-notany (lambda (window) (car (window-margins window)))
                         (get-buffer-window-list nil nil t)))
         (setq contexture-marks--margin
               (list (and (local-variable-p 'left-margin-width)
                          (list left-margin-width))))
         (setq left-margin-width 1)
         (contexture-marks--set-margins 1))))

(defun contexture-marks--free-margin ()
  "Restore the left margin to what it was before the marks.
If it was widened meanwhile, leave it alone."
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

(defun contexture-marks--terminal-p ()
  "Return non-nil if there is a frame that has no fringes."
  (cl-some (lambda (frame)
             (not (or (display-graphic-p frame)
                      (and (daemonp) (eq frame terminal-frame)))))
           (frame-list)))

(provide 'contexture-marks)
;;; contexture-marks.el ends here
