;;; picture.el --- A terminal's screen as an SVG  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The Emacs side of scripts/picture: `picture-set-up' prepares the Emacs
;; that is photographed, and `picture-draw' turns what tmux says of its
;; screen, text with colour sequences, into an SVG.

;;; Code:

(require 'cl-lib)
(eval-when-compile (require 'subr-x))

(declare-function contexture-demo-serve "demo" (folder &rest args))
(declare-function contexture-mode "contexture" (&optional arg))
(defvar contexture-demo-root)
(defvar vc-display-status)

(defconst picture-cell-width 8.4 "Pixels from one column to the next.")
(defconst picture-cell-height 18 "Pixels from one line to the next.")
(defconst picture-margin 10 "Pixels around the screen.")
(defconst picture-foreground "#ffffff" "Colour of text that has none.")
(defconst picture-background "#000000" "Colour behind text that has none.")

(defconst picture-basic-colours
  ["#000000" "#cd3131" "#0dbc79" "#e5e510" "#2472c8" "#bc3fbc" "#11a8cd" "#e5e5e5"
   "#666666" "#f14c4c" "#23d18b" "#f5f543" "#3b8eea" "#d670d6" "#29b8db" "#ffffff"]
  "The sixteen colours that terminals name by a number.")

(cl-defstruct (picture-style (:copier picture-style-copy))
  "How the next characters look."
  foreground background bold italic underline inverse)

;;;; The Emacs in the picture

(defun picture-set-up ()
  "Lay out the windows and open the source file."
  (contexture-demo-serve "picture")
  (setq inhibit-startup-screen t
        auto-save-default nil
        make-backup-files nil
        ring-bell-function #'ignore
        truncate-partial-width-windows 80
        vc-display-status nil
        display-buffer-alist
        '(("list\\*\\'" display-buffer-at-bottom (window-height . 9))
          ("preview\\*\\'" display-buffer-in-direction
           (direction . right) (window-width . 57))))
  (menu-bar-mode -1)
  (load-theme 'modus-vivendi t)
  (global-set-key (kbd "C-c x") 'contexture-command-map)
  (find-file (expand-file-name "elisp/contexture.el" contexture-demo-root))
  (contexture-mode)
  (goto-char (point-min))
  (search-forward "(defun contexture-add-region")
  (recenter 3))

;;;; The drawing

(defconst picture-seconds 20 "Seconds after which a moving picture begins again.")

(defun picture-draw (screen output columns cursor-column cursor-line)
  "Draw the file SCREEN, as tmux captured it, into the file OUTPUT.
The screen has COLUMNS columns; the cursor is at CURSOR-COLUMN and
CURSOR-LINE, counted from 0."
  (picture-draw-moving (list (list screen cursor-column cursor-line)) output columns))

(defun picture-draw-moving (screens output columns)
  "Draw SCREENS, one after the other, into the file OUTPUT.
Each is a list of a file, as tmux captured it, and the cursor's column and
line, counted from 0.  All have COLUMNS columns."
  (let* ((rows (length (picture--lines (caar screens))))
         (count (length screens))
         (width (picture--number (+ (* columns picture-cell-width) (* 2 picture-margin))))
         (height (+ (* rows picture-cell-height) (* 2 picture-margin)))
         (coding-system-for-write 'utf-8-unix))
    (with-temp-file output
      (insert (format "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%s\" height=\"%s\" \
viewBox=\"0 0 %s %s\" font-family=\"'DejaVu Sans Mono', Menlo, Consolas, monospace\" \
font-size=\"14\">\n" width height width height))
      (when (cdr screens)
        (insert (format "<style>.s{visibility:hidden;animation:s %ss step-end infinite}\
@keyframes s{0%%{visibility:visible}%.3f%%{visibility:hidden}}</style>\n"
                        picture-seconds (/ 100.0 count))))
      (insert (format "<rect width=\"100%%\" height=\"100%%\" rx=\"6\" fill=\"%s\"/>\n"
                      picture-background))
      (cl-loop for (file column line) in screens for number from 0
               do (insert (if (cdr screens)
                              (format "<g class=\"s\" style=\"animation-delay:%.3fs\">\n"
                                      (/ (* number (float picture-seconds)) count))
                            "<g>\n"))
               (picture--draw-screen file column line)
               (insert "</g>\n"))
      (insert "</svg>\n"))))

(defun picture--draw-screen (file cursor-column cursor-line)
  "Draw the screen in FILE, with the cursor at CURSOR-COLUMN and CURSOR-LINE."
  (let ((style (make-picture-style)))
    (cl-loop for line in (picture--lines file) for row from 0
             do (picture--draw-line line row style))
    (insert (format "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" fill=\"none\" \
stroke=\"%s\"/>\n"
                    (picture--x cursor-column) (picture--y cursor-line)
                    picture-cell-width picture-cell-height picture-foreground))))

(defun picture--lines (file)
  "Return the lines of FILE."
  (with-temp-buffer
    (let ((coding-system-for-read 'utf-8-unix))
      (insert-file-contents file))
    (split-string (string-trim-right (buffer-string) "\n") "\n")))

(defun picture--draw-line (line row style)
  "Draw LINE at ROW, beginning with STYLE, which sequences in it change."
  (let ((column 0) (start 0) end)
    (while (< start (length line))
      (cond ((eq start (string-match "\e\\[\\([0-9;:]*\\)m" line start))
             (setq end (match-end 0))
             (picture--apply style (match-string 1 line)))
            (t
             (setq end (or (string-search "\e" line start) (length line)))
             (let ((text (substring line start end)))
               (picture--draw-run text row column style)
               (cl-incf column (string-width text)))))
      (setq start end))))

(defun picture--draw-run (text row column style)
  "Draw TEXT, which looks as STYLE says, at ROW and COLUMN."
  (let* ((width (picture--number (* (string-width text) picture-cell-width)))
         (inverse (picture-style-inverse style))
         (foreground (or (picture-style-foreground style) picture-foreground))
         (background (picture-style-background style)))
    (when inverse
      (cl-rotatef foreground background)
      (setq foreground (or foreground picture-background)))
    (when background
      (insert (format "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" fill=\"%s\"/>\n"
                      (picture--x column) (picture--y row) width picture-cell-height
                      background)))
    (unless (string-blank-p text)
      (insert (format "<text x=\"%s\" y=\"%s\" textLength=\"%s\" xml:space=\"preserve\" \
fill=\"%s\"%s>%s</text>\n"
                      (picture--x column) (+ (picture--y row) 13) width foreground
                      (picture--attributes style) (picture--escaped text))))))

(defun picture--attributes (style)
  "Return the attributes that STYLE adds to an element."
  (concat (and (picture-style-bold style) " font-weight=\"bold\"")
          (and (picture-style-italic style) " font-style=\"italic\"")
          (and (picture-style-underline style) " text-decoration=\"underline\"")))

(defun picture--escaped (text)
  "Return TEXT as XML."
  (replace-regexp-in-string
   "[&<>]" (lambda (match) (pcase match ("&" "&amp;") ("<" "&lt;") (_ "&gt;"))) text t t))

(defun picture--apply (style sequence)
  "Change STYLE as SEQUENCE, numbers between semicolons, says."
  (let ((codes (mapcar #'string-to-number (split-string sequence "[;:]"))))
    (while codes
      (setq codes (picture--apply-code style codes)))))

(defun picture--apply-code (style codes)
  "Change STYLE as the first of CODES says, and return what is left of them."
  (pcase (pop codes)
    (0 (dolist (slot '(foreground background bold italic underline inverse))
         (setf (cl-struct-slot-value 'picture-style slot style) nil)))
    (1 (setf (picture-style-bold style) t))
    (3 (setf (picture-style-italic style) t))
    (4 (setf (picture-style-underline style) t))
    (7 (setf (picture-style-inverse style) t))
    (22 (setf (picture-style-bold style) nil))
    (23 (setf (picture-style-italic style) nil))
    (24 (setf (picture-style-underline style) nil))
    (27 (setf (picture-style-inverse style) nil))
    (39 (setf (picture-style-foreground style) nil))
    (49 (setf (picture-style-background style) nil))
    (38 (let ((colour (picture--long-colour codes)))
          (setf (picture-style-foreground style) (car colour))
          (setq codes (cdr colour))))
    (48 (let ((colour (picture--long-colour codes)))
          (setf (picture-style-background style) (car colour))
          (setq codes (cdr colour))))
    ((and code (guard (<= 30 code 37)))
     (setf (picture-style-foreground style) (aref picture-basic-colours (- code 30))))
    ((and code (guard (<= 40 code 47)))
     (setf (picture-style-background style) (aref picture-basic-colours (- code 40))))
    ((and code (guard (<= 90 code 97)))
     (setf (picture-style-foreground style) (aref picture-basic-colours (- code 82))))
    ((and code (guard (<= 100 code 107)))
     (setf (picture-style-background style) (aref picture-basic-colours (- code 92)))))
  codes)

(defun picture--long-colour (codes)
  "Return the colour that CODES begin with, and the codes after it, as a pair."
  (pcase codes
    (`(2 ,red ,green ,blue . ,rest) (cons (format "#%02x%02x%02x" red green blue) rest))
    (`(5 ,number . ,rest) (cons (picture--palette number) rest))
    (_ (cons nil nil))))

(defun picture--palette (number)
  "Return the colour with this NUMBER in the palette of 256."
  (cond ((< number 16) (aref picture-basic-colours number))
        ((< number 232)
         (let ((cube (- number 16))
               (levels [0 95 135 175 215 255]))
           (format "#%02x%02x%02x" (aref levels (/ cube 36))
                   (aref levels (% (/ cube 6) 6)) (aref levels (% cube 6)))))
        (t (let ((grey (+ 8 (* 10 (- number 232)))))
             (format "#%02x%02x%02x" grey grey grey)))))

(defun picture--x (column)
  "Return where COLUMN begins, in pixels."
  (picture--number (+ picture-margin (* column picture-cell-width))))

(defun picture--y (row)
  "Return where ROW begins, in pixels."
  (+ picture-margin (* row picture-cell-height)))

(defun picture--number (number)
  "Return NUMBER with one digit after the point."
  (format "%.1f" number))

(provide 'picture)
;;; picture.el ends here
