;;; contexture-repl-block.el --- Use the code of an answer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Copies and inserts the code between the fences of an answer, and applies
;; it to the code that was asked about.  Applying first shows with
;; `ediff-buffers' what would change in the buffer, saved or not; the
;; buffer changes only when you confirm, and one undo reverts it.

;;; Code:

(require 'contexture-repl-view)
(require 'ediff)
(eval-when-compile (require 'subr-x))

(cl-defstruct (contexture-repl--origin (:constructor contexture-repl--make-origin)
                                       (:copier nil))
  "Origin of the code in a question.
The code is between the markers BEG and END in BUFFER, which visited
FILE; TEXT is the code as it was then."
  buffer beg end file text)

(defvar contexture-repl-compare-function #'contexture-repl--compare
  "Function that shows the changes that applying a block would make.
It is called with the buffer, a buffer with its proposed text, and a
function without arguments to call when the user is done.")

;;;; Blocks

(defun contexture-repl--block-here ()
  "Return the position of the block of code at point, or of the last one."
  (if (get-text-property (point) 'contexture-block) (point)
    (or (contexture-repl--last-block)
        (user-error "No answer here has a block of code"))))

(defun contexture-repl--last-block ()
  "Return a position in the last block of code that a model wrote, or nil."
  (let ((position (marker-position contexture-repl--tail)) found)
    (while (and (not found) (> position (point-min)))
      (if (contexture-repl--answer-block-p (1- position))
          (setq found (1- position))
        (setq position (previous-single-property-change
                        position 'contexture-block nil (point-min)))))
    found))

(defun contexture-repl--answer-block-p (position)
  "Return non-nil if a block of code of an answer is at POSITION."
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
Interactively, BUFFER is that of another window; with a prefix argument,
or if there is no other window, choose one."
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
  "Return a buffer to insert code in; let the user choose if ASK."
  (let ((window (and (not ask)
                     (cl-find-if (lambda (window)
                                   (with-current-buffer (window-buffer window)
                                     (not (or buffer-read-only
                                              (derived-mode-p 'contexture-repl-mode)))))
                                 (window-list)))))
    (if window (window-buffer window)
      (get-buffer (read-buffer "Insert in buffer: " (other-buffer) t)))))

(defun contexture-repl-next-block (&optional count)
  "Go to the next block of code, or COUNT blocks forward."
  (interactive "p")
  (let ((step (if (< (or count 1) 0) -1 1)))
    (dotimes (_ (abs (or count 1)))
      (contexture-repl--to-block step))))

(defun contexture-repl-previous-block (&optional count)
  "Go to the previous block of code, or COUNT blocks back."
  (interactive "p")
  (contexture-repl-next-block (- (or count 1))))

(defun contexture-repl--to-block (step)
  "Go to the next block of code, or the previous one if STEP is negative."
  (let* ((here (get-text-property (point) 'contexture-block))
         (starts (contexture-repl--block-starts))
         (place (if (> step 0)
                    (cl-find-if (lambda (it) (> it (point))) starts)
                  (cl-find-if (lambda (it)
                                (and (< it (point))
                                     (not (eq here (get-text-property
                                                    it 'contexture-block)))))
                              (reverse starts)))))
    (goto-char (or place (user-error "There is no other block of code")))))

(defun contexture-repl--block-starts ()
  "Return the start positions of the blocks of code in this buffer."
  (let ((position (point-min)) starts)
    (while (< position contexture-repl--tail)
      (when (get-text-property position 'contexture-block)
        (push position starts))
      (setq position (next-single-property-change
                      position 'contexture-block nil contexture-repl--tail)))
    (nreverse starts)))

;;;; Applying

(defun contexture-repl-apply ()
  "Apply the block of code at point, by default the last one.
It replaces the code that the question was about.  Ediff shows the
differences; there, \\`b' accepts one, and after \\`q' you are asked about
the rest.  No file is saved."
  (interactive)
  (let* ((block (contexture-repl--block-here))
         (message (get-text-property block 'contexture-message))
         (origin (or (and message (contexture-repl--message-origin message))
                     (user-error "Contexture does not know where that code belongs; \
copy or insert it")))
         (bounds (contexture-repl--locate origin))
         (buffer (contexture-repl--origin-buffer origin))
         (text (contexture-repl--fit
                (contexture-repl-markdown--block-text block)
                (contexture-repl--origin-text origin))))
    (with-current-buffer buffer (barf-if-buffer-read-only))
    (when (equal text (with-current-buffer buffer
                        (buffer-substring-no-properties (car bounds) (cdr bounds))))
      (contexture--user-error "%s already has that code" (buffer-name buffer)))
    (contexture-repl--propose buffer (car bounds) (cdr bounds) text)))

(defun contexture-repl--locate (origin)
  "Return the bounds of the text of ORIGIN, and prepare its buffer."
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
  "Return the bounds of TEXT, which must occur once in this buffer."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char (point-min))
      (let* ((case-fold-search nil)
             (end (or (search-forward text nil t)
                      (contexture--user-error "%s no longer has the code you asked \
about; copy or insert it" (buffer-name)))))
        (when (search-forward text nil t)
          (contexture--user-error "%s has the code you asked about more than \
once; copy or insert it" (buffer-name)))
        (cons (copy-marker (- end (length text))) (copy-marker end t))))))

(defun contexture-repl--fit (text old)
  "Return TEXT with a newline at its end if and only if OLD has one."
  (let ((bare (string-trim-right text "\n+")))
    (if (string-suffix-p "\n" old) (concat bare "\n") bare)))

(defun contexture-repl--propose (buffer beg end text)
  "Show BUFFER with TEXT in place of the text from BEG to END.
Then ask whether to apply that."
  (let* ((proposal (contexture-repl--make-proposal buffer beg end text))
         (done (lambda ()
                 (contexture-repl--decide buffer beg end text)
                 (when (buffer-live-p proposal) (kill-buffer proposal)))))
    (funcall contexture-repl-compare-function buffer proposal done)))

(defun contexture-repl--make-proposal (buffer beg end text)
  "Return a copy of BUFFER with TEXT in place of BEG to END."
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

(defun contexture-repl--decide (buffer beg end text)
  "Ask whether to put TEXT in place of BEG to END in BUFFER, and do so.
Changes accepted in Ediff are there already."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (cond ((equal text (buffer-substring-no-properties beg end))
             (contexture--message "%s has all of the proposal" (buffer-name)))
            ((y-or-n-p (contexture--format "Apply the proposal to %s? " (buffer-name)))
             (contexture-repl--replace beg end text)
             (contexture--message "Applied to %s, which is not saved; undo reverts it"
                      (buffer-name)))
            (t (contexture--message "%s is unchanged" (buffer-name)))))))

(defun contexture-repl--replace (beg end text)
  "Replace the text from BEG to END with TEXT, as one change."
  (let ((source (generate-new-buffer " *contexture replacement*")))
    (unwind-protect
        (progn
          (with-current-buffer source (insert text))
          (undo-boundary)
          (atomic-change-group
            (save-restriction
              (widen)
              (narrow-to-region beg end)
              ;; This keeps markers and point where the text is the same.
              (replace-buffer-contents source 1)))
          (undo-boundary))
      (kill-buffer source))))

(provide 'contexture-repl-block)
;;; contexture-repl-block.el ends here
