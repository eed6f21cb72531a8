;;; contexture-repl-block.el --- Use the code of an answer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Copying and inserting the code between the fences of an answer, and
;; putting it in the place of the code that was asked about.  The latter
;; is shown as differences first (`ediff-buffers'), one by one, between
;; the buffer as it is, saved or not, and as it would become; it changes
;; when the user says so, and one undo takes it back.

;;; Code:

(require 'contexture-repl-view)
(require 'ediff)
(eval-when-compile (require 'subr-x))

(cl-defstruct (contexture-repl--origin (:constructor contexture-repl--make-origin)
                                       (:copier nil))
  "Where the code in a question came from.
BUFFER and the markers BEG and END are where it is, FILE what BUFFER
visited, and TEXT what it was then."
  buffer beg end file text)

(defvar contexture-repl-compare-function #'contexture-repl--compare
  "Function that shows what applying a block would change.
It is called with the buffer, a buffer with what it would become, and a
function without arguments to be called when the user has looked.")

;;;; Blocks

(defun contexture-repl--block-here ()
  "Return where the block of code at point is, or else the last of an answer."
  (if (get-text-property (point) 'contexture-block) (point)
    (or (contexture-repl--last-block)
        (user-error "No answer here has code between fences"))))

(defun contexture-repl--last-block ()
  "Return a position in the last block of code that a model wrote, or nil.
What the user asked about is none."
  (let ((position (marker-position contexture-repl--tail)) found)
    (while (and (not found) (> position (point-min)))
      (if (contexture-repl--answer-block-p (1- position))
          (setq found (1- position))
        (setq position (previous-single-property-change
                        position 'contexture-block nil (point-min)))))
    found))

(defun contexture-repl--answer-block-p (position)
  "Whether a block of code of an answer is at POSITION."
  (let ((message (get-text-property position 'contexture-message)))
    (and (get-text-property position 'contexture-block)
         message
         (eq (contexture-repl--message-role message) :assistant))))

(defun contexture-repl-copy-block ()
  "Copy the block of code at point, by default the last one."
  (interactive)
  (let ((text (contexture-repl-markdown--block-text (contexture-repl--block-here))))
    (kill-new text)
    (contexture--message "Copied %s" (contexture--count
                          (length (split-string text "\n" t)) "line"))))

(defun contexture-repl-insert-block (buffer)
  "Insert the block of code at point, by default the last one, in BUFFER.
Interactively, that is the buffer of another window, or one that you
choose when there is none or with a prefix argument."
  (interactive (list (contexture-repl--other-buffer current-prefix-arg)))
  (let ((text (contexture-repl-markdown--block-text (contexture-repl--block-here))))
    (with-current-buffer buffer
      (barf-if-buffer-read-only)
      (let ((window (get-buffer-window buffer t)))
        (when window (goto-char (window-point window)))
        (push-mark)
        (insert text)
        (when window (set-window-point window (point)))))
    (contexture--message "Inserted in %s" (buffer-name (get-buffer buffer)))))

(defun contexture-repl--other-buffer (ask)
  "Return a buffer to insert code in, the user's choice if ASK."
  (let ((window (and (not ask)
                     (cl-find-if (lambda (window)
                                   (with-current-buffer (window-buffer window)
                                     (not (or buffer-read-only
                                              (derived-mode-p 'contexture-repl-mode)))))
                                 (window-list)))))
    (if window (window-buffer window)
      (get-buffer (read-buffer "Insert in buffer: " (other-buffer) t)))))

(defun contexture-repl-next-block (&optional count)
  "Go to the next block of code, or the COUNTth one."
  (interactive "p")
  (let ((step (if (< (or count 1) 0) -1 1)))
    (dotimes (_ (abs (or count 1)))
      (contexture-repl--to-block step))))

(defun contexture-repl-previous-block (&optional count)
  "Go to the block of code before, or the COUNTth one before."
  (interactive "p")
  (contexture-repl-next-block (- (or count 1))))

(defun contexture-repl--to-block (step)
  "Go to the next block of code, or to that before if STEP is negative."
  (let* ((here (get-text-property (point) 'contexture-block))
         (starts (contexture-repl--block-starts))
         (place (if (> step 0)
                    (cl-find-if (lambda (it) (> it (point))) starts)
                  (cl-find-if (lambda (it)
                                (and (< it (point))
                                     (not (eq here (get-text-property
                                                    it 'contexture-block)))))
                              (reverse starts)))))
    (goto-char (or place (user-error "There is no other code")))))

(defun contexture-repl--block-starts ()
  "Return where the blocks of code of this buffer begin."
  (let ((position (point-min)) starts)
    (while (< position contexture-repl--tail)
      (when (get-text-property position 'contexture-block)
        (push position starts))
      (setq position (next-single-property-change
                      position 'contexture-block nil contexture-repl--tail)))
    (nreverse starts)))

;;;; Applying

(defun contexture-repl-apply ()
  "Put the block of code at point, by default the last one, where it belongs.
That is in the place of the code that the question was about.  Ediff
shows the differences; there, \\`b' takes one over, and after \\`q' you
are asked about the rest.  Nothing is saved."
  (interactive)
  (let* ((block (contexture-repl--block-here))
         (message (get-text-property block 'contexture-message))
         (origin (or (and message (contexture-repl--message-origin message))
                     (user-error "It is not known where that code belongs; \
copy or insert it")))
         (bounds (contexture-repl--locate origin))
         (buffer (contexture-repl--origin-buffer origin))
         (text (contexture-repl--fit
                (contexture-repl-markdown--block-text block)
                (contexture-repl--origin-text origin))))
    (with-current-buffer buffer (barf-if-buffer-read-only))
    (when (equal text (with-current-buffer buffer
                        (buffer-substring-no-properties (car bounds) (cdr bounds))))
      (contexture--user-error "%s has that already" (buffer-name buffer)))
    (contexture-repl--propose buffer (car bounds) (cdr bounds) text)))

(defun contexture-repl--locate (origin)
  "Return the bounds of the text of ORIGIN, whose buffer is made ready."
  (let ((buffer (contexture-repl--origin-buffer origin))
        (file (contexture-repl--origin-file origin)))
    (cond ((buffer-live-p buffer)
           (cons (copy-marker (contexture-repl--origin-beg origin))
                 (copy-marker (contexture-repl--origin-end origin) t)))
          ((and file (file-exists-p file))
           (setf (contexture-repl--origin-buffer origin) (find-file-noselect file))
           (with-current-buffer (contexture-repl--origin-buffer origin)
             (contexture-repl--find-text (contexture-repl--origin-text origin))))
          (t (user-error "The buffer that the code came from is gone")))))

(defun contexture-repl--find-text (text)
  "Return the bounds of TEXT, which must be in this buffer once."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char (point-min))
      (let* ((case-fold-search nil)
             (end (or (search-forward text nil t)
                      (contexture--user-error "%s has that code no more" (buffer-name)))))
        (when (search-forward text nil t)
          (contexture--user-error "%s has that code more than once" (buffer-name)))
        (cons (copy-marker (- end (length text))) (copy-marker end t))))))

(defun contexture-repl--fit (text old)
  "Return TEXT with a newline at its end if and only if OLD has one."
  (let ((bare (string-trim-right text "\n+")))
    (if (string-suffix-p "\n" old) (concat bare "\n") bare)))

(defun contexture-repl--propose (buffer beg end text)
  "Show BUFFER with TEXT in the place of what is from BEG to END.
When the user has looked, ask whether that is to be done."
  (let* ((proposal (contexture-repl--make-proposal buffer beg end text))
         (done (lambda ()
                 (contexture-repl--decide buffer beg end text)
                 (when (buffer-live-p proposal) (kill-buffer proposal)))))
    (funcall contexture-repl-compare-function buffer proposal done)))

(defun contexture-repl--make-proposal (buffer beg end text)
  "Return a buffer as BUFFER would be with TEXT in place of BEG to END."
  (let ((proposal (generate-new-buffer
                   (format "*contexture: proposal for %s*" (buffer-name buffer))))
        (mode (buffer-local-value 'major-mode buffer)))
    (with-current-buffer proposal
      (insert (with-current-buffer buffer
                (save-restriction
                  (widen)
                  (concat (buffer-substring-no-properties (point-min) beg)
                          text
                          (buffer-substring-no-properties end (point-max))))))
      (delay-mode-hooks (ignore-errors (funcall mode)))
      (set-buffer-modified-p nil)
      (setq buffer-read-only t))
    proposal))

(defun contexture-repl--compare (buffer proposal done)
  "Show how PROPOSAL differs from BUFFER with Ediff, then call DONE.
Before that, windows are made as they were."
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

(defun contexture-repl--decide (buffer beg end text)
  "Ask whether BUFFER is to have TEXT in the place of BEG to END, and do so.
What the user took over in Ediff is there already."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (cond ((equal text (buffer-substring-no-properties beg end))
             (contexture--message "%s has all of it" (buffer-name)))
            ((y-or-n-p (contexture--format "Apply the proposal to %s? " (buffer-name)))
             (contexture-repl--replace beg end text)
             (contexture--message "Applied to %s, which is not saved; undo takes it back"
                      (buffer-name)))
            (t (contexture--message "%s stays as it is" (buffer-name)))))))

(defun contexture-repl--replace (beg end text)
  "Put TEXT in the place of what is from BEG to END, as one change."
  (let ((source (generate-new-buffer " *contexture replacement*")))
    (unwind-protect
        (progn
          (with-current-buffer source (insert text))
          (undo-boundary)
          (atomic-change-group
            (save-restriction
              (widen)
              (narrow-to-region beg end)
              ;; Keeps markers and point where the text is the same.
              (replace-buffer-contents source 1)))
          (undo-boundary))
      (kill-buffer source))))

(provide 'contexture-repl-block)
;;; contexture-repl-block.el ends here
