;;; contexture-review.el --- Review a proposed change at its place  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Shows how a buffer would change, in the buffer itself: lines that would
;; go are coloured, and lines that would come stand below them, also while
;; the new text still comes in.  The buffer changes only when you accept,
;; all of the change or a part of it, and one undo reverts that.

;;; Code:

(require 'cl-lib)
(require 'contexture-base)
(require 'diff-mode)
(require 'ediff)
(eval-when-compile (require 'subr-x))

(cl-defstruct (contexture-review (:constructor contexture-review--make)
                                 (:conc-name contexture-review--) (:copier nil))
  "A change that is proposed for the lines below PLACE, an overlay.
BEFORE and AFTER are the texts of these lines around the part that would
be replaced; TEXT is the new text of that part, as far as it has come.
PARTS are overlays of the parts that are neither accepted nor rejected.
STATE is `coming', `ready' or `ended'.  SHOWN is the time when it was
drawn last, ACCEPTED the number of parts that were accepted.  AGAIN is a
function to ask once more with a remark; CANCEL stops what comes."
  place before after (text "") parts (state 'coming) (shown 0) (accepted 0) again cancel)

(defconst contexture-review--draw-seconds 0.2
  "Minimum number of seconds between two drawings of a change that comes.")

(defvar contexture-review--all nil
  "Changes that are proposed, in all buffers, the newest last.")

(defvar contexture-review-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'contexture-review-accept)
    (define-key map (kbd "C-c C-k") #'contexture-review-reject)
    (define-key map (kbd "C-c C-a") #'contexture-review-accept-part)
    (define-key map (kbd "C-c C-d") #'contexture-review-reject-part)
    (define-key map (kbd "C-c C-n") #'contexture-review-next)
    (define-key map (kbd "C-c C-p") #'contexture-review-previous)
    (define-key map (kbd "C-c C-e") #'contexture-review-ediff)
    (define-key map (kbd "C-c C-r") #'contexture-review-again)
    map)
  "Keymap of the lines for which a change is proposed.")

;;;; Beginning and ending

(defun contexture-review--check ()
  "Signal an error unless this buffer can be changed."
  (barf-if-buffer-read-only)
  (when (buffer-base-buffer)
    (contexture--user-error "%s shows a part of %s; ask for the change there"
                            (buffer-name) (buffer-name (buffer-base-buffer)))))

(cl-defun contexture-review--begin (beg end &key again cancel)
  "Begin to propose a change of the text from BEG to END in this buffer.
AGAIN is a function that asks once more, with a remark; CANCEL one that
stops what comes.  `contexture-review--show' shows the change."
  (contexture-review--check)
  (save-excursion
    (save-restriction
      (widen)
      (let ((from (progn (goto-char beg) (line-beginning-position)))
            (to (progn (goto-char end)
                       (if (and (bolp) (> end beg)) end
                         (min (point-max) (1+ (line-end-position)))))))
        (when (cl-some (lambda (it) (overlay-get it 'contexture-review))
                       (overlays-in from (max to (1+ from))))
          (user-error "A change of these lines is proposed already; accept or reject it first"))
        (let* ((place (make-overlay from to nil t nil))
               (review (contexture-review--make
                        :place place :again again :cancel cancel
                        :before (buffer-substring-no-properties from beg)
                        :after (buffer-substring-no-properties end to))))
          (overlay-put place 'contexture-review review)
          (overlay-put place 'keymap contexture-review-map)
          (overlay-put place 'priority 100)
          (setq contexture-review--all (append contexture-review--all (list review)))
          (contexture-review--title review "Waiting for the change")
          review)))))

(defun contexture-review--open ()
  "Return the changes that are proposed, in buffers that live."
  (setq contexture-review--all
        (cl-remove-if-not #'contexture-review--buffer contexture-review--all)))

(defun contexture-review--buffer (review)
  "Return the buffer of REVIEW, or nil if it was killed."
  (overlay-buffer (contexture-review--place review)))

(defun contexture-review--bounds (review)
  "Return the bounds of the text that REVIEW would replace."
  (let ((place (contexture-review--place review)))
    (cons (+ (overlay-start place) (length (contexture-review--before review)))
          (- (overlay-end place) (length (contexture-review--after review))))))

(defun contexture-review--end (review)
  "Show REVIEW no more."
  (setf (contexture-review--state review) 'ended)
  (setq contexture-review--all (delq review contexture-review--all))
  (mapc #'delete-overlay (contexture-review--parts review))
  (delete-overlay (contexture-review--place review)))

(defun contexture-review--drop-in (beg end)
  "Show no more changes of the text from BEG to END in this buffer."
  (dolist (overlay (overlays-in beg (max end (1+ beg))))
    (when-let* ((review (overlay-get overlay 'contexture-review)))
      (contexture-review--end review))))

(defun contexture-review--ended-p (review)
  "Return non-nil if REVIEW was accepted or rejected, or its buffer killed."
  (or (eq (contexture-review--state review) 'ended)
      (not (contexture-review--buffer review))))

;;;; Showing

(defun contexture-review--show (review text &optional complete)
  "Show TEXT as what REVIEW proposes; COMPLETE means that no more comes.
Return non-nil if anything would change."
  (unless (contexture-review--ended-p review)
    (setf (contexture-review--text review) text)
    (when (or complete
              (> (float-time) (+ (contexture-review--shown review)
                                 contexture-review--draw-seconds)))
      (setf (contexture-review--shown review) (float-time))
      (with-current-buffer (contexture-review--buffer review)
        (save-excursion
          (save-restriction
            (widen)
            (contexture-review--draw review complete)))))))

(defun contexture-review--draw (review complete)
  "Draw the parts of REVIEW; COMPLETE means that no more comes."
  (let* ((place (contexture-review--place review))
         (old (buffer-substring-no-properties (overlay-start place) (overlay-end place)))
         (parts (contexture-review--differences review old complete)))
    (mapc #'delete-overlay (contexture-review--parts review))
    (setf (contexture-review--parts review)
          (mapcar (lambda (part) (contexture-review--draw-part review part)) parts))
    (when complete
      (setf (contexture-review--state review) 'ready))
    (contexture-review--title
     review (concat (contexture--count (length parts) "change")
                    (if complete " proposed" " so far")))
    (when (and complete (null parts))
      (contexture-review--end review)
      (contexture--message "%s already has that text" (buffer-name)))
    parts))

(defun contexture-review--differences (review old complete)
  "Return how REVIEW would change OLD, the text of its lines.
While it is not COMPLETE, more of the end may still come."
  (let* ((text (contexture-review--text review))
         (new (concat (contexture-review--before review)
                      (if complete text
                        (substring text 0 (or (cl-position ?\n text :from-end t) 0)))
                      (and complete (contexture-review--after review))))
         (parts (contexture-review--compare old new))
         (lines (cl-count ?\n (contexture-review--ended old))))
    (if complete parts
      (delq nil (mapcar (lambda (part) (contexture-review--so-far part lines)) parts)))))

(defun contexture-review--so-far (part lines)
  "Return PART of a text that still comes, or nil; the old text has LINES lines.
At its end, only as many lines go as have come."
  (pcase-let ((`(,line ,count . ,text) part))
    (cond ((< (+ line count) lines) part)
          ((not (string-empty-p text))
           (cons line (cons (min count (cl-count ?\n text)) text))))))

(defun contexture-review--ended (text)
  "Return TEXT with a newline at its end."
  (if (or (string-empty-p text) (string-suffix-p "\n" text)) text (concat text "\n")))

(defun contexture-review--compare (old new)
  "Return the differences of OLD and NEW, each (LINE COUNT . TEXT).
COUNT lines after the first LINE lines of OLD are replaced by TEXT."
  (let ((coding-system-for-write 'utf-8-emacs-unix)
        (coding-system-for-read 'utf-8-emacs-unix)
        (file (make-temp-file "contexture-old"))
        (lines (split-string new "\n")))
    (unwind-protect
        (with-temp-buffer
          (write-region (contexture-review--ended old) nil file nil 'silent)
          (insert (contexture-review--ended new))
          (let ((status (call-process-region nil nil diff-command t t nil
                                             "-a" file "-")))
            (unless (memql status '(0 1))
              (contexture--user-error "%s failed: %s" diff-command
                                      (string-trim (buffer-string)))))
          (contexture-review--read-differences lines))
      (delete-file file))))

(defun contexture-review--read-differences (lines)
  "Return the differences that this buffer has from diff.
LINES are the lines of the new text."
  (goto-char (point-min))
  (let (found)
    (while (re-search-forward
            "^\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)?\\([acd]\\)\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)?$"
            nil t)
      (let* ((number (lambda (group) (and (match-string group)
                                          (string-to-number (match-string group)))))
             (from (funcall number 1)) (to (or (funcall number 2) from))
             (first (funcall number 4)) (last (or (funcall number 5) first))
             (kind (match-string 3)))
        (push (cons (if (equal kind "a") from (1- from))
                    (cons (if (equal kind "a") 0 (1+ (- to from)))
                          (if (equal kind "d") ""
                            (mapconcat (lambda (line) (concat line "\n"))
                                       (cl-subseq lines (1- first) last) ""))))
              found)))
    (nreverse found)))

(defun contexture-review--draw-part (review part)
  "Draw PART of REVIEW, a difference, and return its overlay."
  (pcase-let* ((`(,line ,count . ,text) part)
               (end (overlay-end (contexture-review--place review)))
               (from (progn (goto-char (overlay-start (contexture-review--place review)))
                            (forward-line line)
                            (point)))
               (to (progn (when (> count 0) (forward-line count))
                          (min (point) end)))
               (overlay (make-overlay from to nil t nil)))
    ;; The last line of a buffer may have no newline.
    (let ((bare (and (= to (point-max)) (> to (point-min))
                     (not (eq (char-before to) ?\n)))))
      (when (and bare (string-empty-p text)
                 (> from (overlay-start (contexture-review--place review))))
        (move-overlay overlay (cl-decf from) to))
      (overlay-put overlay 'contexture-new
                   (if (not bare) text
                     (concat (and (= from to) (not (string-empty-p text)) "\n")
                             (string-remove-suffix "\n" text))))
      (overlay-put overlay 'after-string
                   (propertize (if bare (concat "\n" (string-remove-suffix "\n" text)) text)
                               'face 'diff-added)))
    (overlay-put overlay 'contexture-old (buffer-substring-no-properties from to))
    (overlay-put overlay 'face 'diff-removed)
    (overlay-put overlay 'priority 101)
    overlay))

(defun contexture-review--title (review text)
  "Show TEXT and the keys above REVIEW."
  (let ((keys (if (eq (contexture-review--state review) 'ready)
                  "C-c C-c accept, C-c C-k reject, C-c C-a/C-d a part, C-c C-r again"
                "C-c C-k stops it")))
    (overlay-put (contexture-review--place review) 'before-string
                 (propertize (format "%s  %s\n" text keys) 'face 'shadow))))

;;;; Commands

(defun contexture-review--here ()
  "Return the proposed change at point, or the only one of this buffer."
  (let ((here (cl-remove-if-not
               (lambda (review) (eq (contexture-review--buffer review) (current-buffer)))
               (contexture-review--open))))
    (or (cl-find-if (lambda (review)
                      (let ((place (contexture-review--place review)))
                        (<= (overlay-start place) (point) (overlay-end place))))
                    here)
        (and (null (cdr here)) (car here))
        (user-error "No change is proposed here"))))

(defun contexture-review--part (review)
  "Return the part of REVIEW at point, or the next one."
  (unless (eq (contexture-review--state review) 'ready)
    (user-error "The change is still coming"))
  (let ((parts (contexture-review--parts review)))
    (or (cl-find-if (lambda (part) (>= (overlay-end part) (point))) parts)
        (car parts))))

(defun contexture-review--apply (parts)
  "Put the new text of PARTS in place, as one change."
  (dolist (part parts)
    (unless (equal (overlay-get part 'contexture-old)
                   (buffer-substring-no-properties (overlay-start part)
                                                   (overlay-end part)))
      (goto-char (overlay-start part))
      (user-error "You have changed these lines since; undo that, or reject the change")))
  (undo-boundary)
  (atomic-change-group
    (dolist (part (reverse parts))
      (contexture-review--replace (overlay-start part) (overlay-end part)
                                 (overlay-get part 'contexture-new))))
  (undo-boundary))

(defun contexture-review--replace (beg end text)
  "Replace the text from BEG to END with TEXT; keep markers and point."
  (let ((source (generate-new-buffer " *contexture replacement*")))
    (unwind-protect
        (progn
          (with-current-buffer source (insert text))
          (save-restriction
            (widen)
            (narrow-to-region beg end)
            ;; This keeps markers and point where the text is the same.
            (replace-buffer-contents source 1)))
      (kill-buffer source))))

(defun contexture-review--drop (review part)
  "Take PART out of REVIEW, which ends with its last one."
  (setf (contexture-review--parts review) (delq part (contexture-review--parts review)))
  (delete-overlay part)
  (if-let* ((left (length (contexture-review--parts review)))
            ((> left 0)))
      (progn
        (contexture-review--title review (concat (contexture--count left "change") " left"))
        (goto-char (overlay-start (contexture-review--part review))))
    (contexture-review--end review)
    (contexture--message
     "Accepted %s in %s, which is not saved; undo reverts it"
     (contexture--count (contexture-review--accepted review) "change") (buffer-name))))

(defun contexture-review-accept ()
  "Make the change that is proposed at point, or what is left of it."
  (interactive "*")
  (let* ((review (contexture-review--here))
         (parts (and (contexture-review--part review) (contexture-review--parts review))))
    (contexture-review--apply parts)
    (contexture-review--end review)
    (contexture--message "Accepted %s in %s, which is not saved; undo reverts it"
                         (contexture--count (length parts) "change") (buffer-name))))

(defun contexture-review-reject ()
  "Drop the change that is proposed at point; stop it if it still comes."
  (interactive)
  (let* ((review (contexture-review--here))
         (cancel (and (eq (contexture-review--state review) 'coming)
                      (contexture-review--cancel review))))
    (contexture-review--end review)
    (when cancel (funcall cancel))
    (contexture--message "Rejected the change")))

(defun contexture-review-accept-part ()
  "Make the part of the proposed change at point, or the next one."
  (interactive "*")
  (let* ((review (contexture-review--here))
         (part (contexture-review--part review)))
    (contexture-review--apply (list part))
    (cl-incf (contexture-review--accepted review))
    (contexture-review--drop review part)))

(defun contexture-review-reject-part ()
  "Drop the part of the proposed change at point, or the next one."
  (interactive)
  (let ((review (contexture-review--here)))
    (contexture-review--drop review (contexture-review--part review))))

(defun contexture-review--places ()
  "Return the places of all parts, as markers, those of this buffer first."
  (let ((here (current-buffer)) places)
    (dolist (review (contexture-review--open))
      (dolist (part (or (contexture-review--parts review)
                        (list (contexture-review--place review))))
        (push (set-marker (make-marker) (overlay-start part) (overlay-buffer part))
              places)))
    (sort (nreverse places)
          (lambda (one other)
            (let ((mine (eq (marker-buffer one) here)))
              (and (eq mine (eq (marker-buffer other) here))
                   (eq (marker-buffer one) (marker-buffer other))
                   (< one other)))))))

(defun contexture-review-next (&optional back)
  "Go to the next part of a proposed change, also in another buffer.
With BACK, go to the previous one."
  (interactive)
  (let* ((places (contexture-review--places))
         (mine (cl-remove-if-not (lambda (it) (eq (marker-buffer it) (current-buffer)))
                                 places))
         (place (or (if back (cl-find-if (lambda (it) (< it (point))) (reverse mine))
                      (cl-find-if (lambda (it) (> it (point))) mine))
                    (cl-find-if-not (lambda (it) (memq it mine)) places)
                    (if back (car (last mine)) (car mine))
                    (user-error "No change is proposed"))))
    (pop-to-buffer (marker-buffer place))
    (goto-char place)))

(defun contexture-review-previous ()
  "Go to the previous part of a proposed change, also in another buffer."
  (interactive)
  (contexture-review-next t))

(defun contexture-review-again (remark)
  "Drop the change that is proposed at point, and ask again with REMARK."
  (interactive (progn (contexture-review--here)
                      (list (read-string "Ask again, with the remark: "))))
  (let* ((review (contexture-review--here))
         (again (or (contexture-review--again review)
                    (user-error "Nobody can be asked for this change again"))))
    (when (string-blank-p remark)
      (user-error "Say what should be different"))
    (funcall again remark)))

;;;; Ediff

(defvar contexture-repl-compare-function #'contexture-review--compare-buffers
  "Function that shows a proposed change beside the buffer.
It is called with the buffer, a buffer with its proposed text, and a
function without arguments to call when the user is done.")

(defun contexture-review-ediff ()
  "Show the change that is proposed at point with Ediff.
There, \\`b' accepts one difference; after \\`q' you are asked about the
rest.  No file is saved."
  (interactive "*")
  (let* ((review (contexture-review--here))
         (bounds (progn (contexture-review--part review)
                        (contexture-review--bounds review)))
         (text (contexture-review--text review))
         (beg (copy-marker (car bounds))) (end (copy-marker (cdr bounds) t)))
    (contexture-review--end review)
    (let* ((buffer (current-buffer))
           (proposal (contexture-review--make-proposal beg end text))
           (done (lambda ()
                   (when (buffer-live-p buffer)
                     (with-current-buffer buffer
                       (contexture-review--decide beg end text)))
                   (when (buffer-live-p proposal) (kill-buffer proposal)))))
      (funcall contexture-repl-compare-function buffer proposal done))))

(defun contexture-review--make-proposal (beg end text)
  "Return a copy of this buffer with TEXT in place of BEG to END."
  (let ((mode major-mode)
        (whole (save-restriction
                 (widen)
                 (concat (buffer-substring-no-properties (point-min) beg)
                         text
                         (buffer-substring-no-properties end (point-max)))))
        (proposal (generate-new-buffer
                   (format "*contexture: proposal for %s*" (buffer-name)))))
    (with-current-buffer proposal
      (insert whole)
      (delay-mode-hooks (ignore-errors (funcall mode)))
      (set-buffer-modified-p nil)
      (setq buffer-read-only t))
    proposal))

(defun contexture-review--compare-buffers (buffer proposal done)
  "Show with Ediff how PROPOSAL differs from BUFFER, then call DONE.
Restore the windows before that call."
  (let* ((windows (current-window-configuration))
         (after (lambda ()
                  (when (frame-live-p (window-configuration-frame windows))
                    (set-window-configuration windows))
                  (funcall done))))
    (with-current-buffer buffer (widen))
    (ediff-buffers
     buffer proposal
     (list (lambda ()
             (add-hook 'ediff-quit-hook
                       (lambda () (contexture--later after))
                       t t))))))

(defun contexture-review--decide (beg end text)
  "Ask whether to put TEXT in place of BEG to END in this buffer, and do so.
Changes accepted in Ediff are there already."
  (cond ((equal text (buffer-substring-no-properties beg end))
         (contexture--message "Applied all changes to %s" (buffer-name)))
        ((y-or-n-p (contexture--format "Accept the change of %s? " (buffer-name)))
         (undo-boundary)
         (contexture-review--replace beg end text)
         (undo-boundary)
         (contexture--message "Accepted the change in %s, which is not saved; undo reverts it"
                              (buffer-name)))
        (t (contexture--message "%s is unchanged" (buffer-name)))))

(provide 'contexture-review)
;;; contexture-review.el ends here
