;;; contexture-conversation-markdown-tests.el --- Tests of how answers look  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What Markdown becomes, whichever pieces it comes in.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-conversation-view)

(defun contexture-conversation-markdown-tests--draw (&rest pieces)
  "Draw PIECES in this buffer."
  (let ((state (contexture-markdown--begin nil)))
    (dolist (piece pieces)
      (goto-char (point-max))
      (contexture-markdown--insert state piece))
    (contexture-markdown--end state)
    state))

(defun contexture-conversation-markdown-tests--pieces (text size)
  "Return TEXT in pieces of SIZE characters."
  (cl-loop for from from 0 below (length text) by size
           collect (substring text from (min (length text) (+ from size)))))

(defun contexture-conversation-markdown-tests--look (text property)
  "Return PROPERTY of what TEXT, found in this buffer, begins with."
  (goto-char (point-min))
  (search-forward text)
  (get-text-property (match-beginning 0) property))

(defun contexture-conversation-markdown-tests--faces (text)
  "Return the faces of TEXT, as a list."
  (ensure-list (contexture-conversation-markdown-tests--look text 'face)))

(defmacro contexture-conversation-markdown-tests--with (pieces &rest body)
  "Run BODY in a buffer where PIECES are drawn."
  (declare (indent 1) (debug t))
  `(with-temp-buffer
     (set-syntax-table text-mode-syntax-table)
     (apply #'contexture-conversation-markdown-tests--draw (ensure-list ,pieces))
     ,@body))

(defun contexture-conversation-markdown-tests--picture ()
  "Return this buffer's text with what can be seen of it."
  (let ((position (point-min)) parts)
    (while (< position (point-max))
      (let ((next (next-property-change position nil (point-max))))
        (push (list (buffer-substring-no-properties position next)
                    (get-text-property position 'face)
                    (get-text-property position 'invisible)
                    (get-text-property position 'display)
                    (and (get-text-property position 'contexture-block) t))
              parts)
        (setq position next)))
    (nreverse parts)))

(ert-deftest contexture-conversation-breaks-a-line-without-end-at-once ()
  ;; Each break looked for a blank up to the end of the line: 4 MB took a minute.
  (with-temp-buffer
    (let ((state (contexture-markdown--begin nil))
          (begun (float-time)))
      (contexture-markdown--insert-broken state (make-string 4000000 ?é))
      (should (< (- (float-time) begun) 5))
      (should (= (/ 4000000 (* 2 contexture-markdown--longest)) (count-lines (point-min) (point-max))))
      (should (equal (make-string 4000000 ?é)
                     (contexture-markdown--text (point-min) (point-max)))))))

(ert-deftest contexture-conversation-markdown-draws-headings ()
  (contexture-conversation-markdown-tests--with "# One\n### Two\n####### No\n#no\n"
    (should (equal (contexture-conversation-markdown-tests--faces "One") '(contexture-conversation-heading)))
    (should (equal (contexture-conversation-markdown-tests--faces "Two") '(contexture-conversation-heading)))
    (should (eq (contexture-conversation-markdown-tests--look "# One" 'invisible)
                'contexture-markup))
    (should-not (contexture-conversation-markdown-tests--look " No" 'face))
    (should-not (contexture-conversation-markdown-tests--look "#no" 'face))))

(ert-deftest contexture-conversation-markdown-draws-emphasis ()
  (contexture-conversation-markdown-tests--with
      "**bold** and *light* and __strong__ and _soft_ and ~~gone~~ and a_b_c and 2 * 3 * 4\n"
    (should (memq 'bold (contexture-conversation-markdown-tests--faces "bold")))
    (should (memq 'italic (contexture-conversation-markdown-tests--faces "light")))
    (should (memq 'bold (contexture-conversation-markdown-tests--faces "strong")))
    (should (memq 'italic (contexture-conversation-markdown-tests--faces "soft")))
    (should (contexture-conversation-markdown-tests--faces "gone"))
    (should (eq (contexture-conversation-markdown-tests--look "**bold" 'invisible)
                'contexture-markup))
    (should-not (contexture-conversation-markdown-tests--look "b_c" 'face))
    (should-not (contexture-conversation-markdown-tests--look " 3 " 'face))))

(ert-deftest contexture-conversation-markdown-draws-code-within-lines ()
  (contexture-conversation-markdown-tests--with "Call `a **b** c` now\n"
    (should (memq 'contexture-conversation-inline-code
                  (contexture-conversation-markdown-tests--faces "a **b")))
    (should-not (contexture-conversation-markdown-tests--look "**b" 'invisible))))

(ert-deftest contexture-conversation-markdown-draws-lists-quotes-rules-links ()
  (contexture-conversation-markdown-tests--with
      "- one\n  * two\n12. three\n> said\n---\nsee [here](https://example.org/x)\n"
    (should (equal (contexture-conversation-markdown-tests--look "- one" 'display) "\u2022"))
    (should (equal (contexture-conversation-markdown-tests--look "* two" 'display) "\u2022"))
    (should (equal (contexture-conversation-markdown-tests--look "  * two" 'wrap-prefix) "    "))
    (should (equal (contexture-conversation-markdown-tests--faces "12.") '(bold)))
    (should (equal (contexture-conversation-markdown-tests--faces "> said") '(contexture-conversation-quote)))
    (should (equal (contexture-conversation-markdown-tests--faces "---") '(contexture-conversation-markup)))
    (should (memq 'link (contexture-conversation-markdown-tests--faces "here")))
    (should (equal (contexture-conversation-markdown-tests--look "here" 'help-echo)
                   "https://example.org/x"))
    (should (eq (contexture-conversation-markdown-tests--look "](https" 'invisible)
                'contexture-markup))))

(defun contexture-conversation-markdown-tests--shown ()
  "Return this buffer's text as a display without colours shows it."
  (let ((position (point-min)) (shown ""))
    (while (< position (point-max))
      (let ((display (get-text-property position 'display)))
        (setq shown (concat shown (cond ((invisible-p position) "")
                                        ((stringp display) display)
                                        (t (string (char-after position)))))
              position (if (stringp display)
                           (next-single-property-change position 'display nil (point-max))
                         (1+ position)))))
    shown))

(ert-deftest contexture-conversation-markdown-aligns-tables ()
  (let ((text "Sizes:\n| Name | Size | Note |\n|:--|---:|:-:|\n| `a \\| b` | 7 | **big** |\n| 漢字 | 1234 | x |\nSo.\n"))
    (contexture-conversation-markdown-tests--with text
      (add-to-invisibility-spec 'contexture-markup)
      (should (equal (buffer-string) text)))
    (with-temp-buffer
      (add-to-invisibility-spec 'contexture-markup)
      (contexture-conversation-markdown-tests--draw text)
      (should (equal (contexture-conversation-markdown-tests--shown)
                     (concat "Sizes:\n| Name   | Size | Note |\n|--------|------|------|\n"
                             "| a \\| b |    7 | big  |\n| 漢字   | 1234 |  x   |\nSo.\n"))))))

(ert-deftest contexture-conversation-markdown-aligns-only-tables ()
  (dolist (text '("| a | b |\n| cc | d |\n" "```\n| a | b |\n|---|---|\n| cc | d |\n```\nx\n"
                  "a | b\n|---|\n"))
    (contexture-conversation-markdown-tests--with text
      (should (equal (contexture-conversation-markdown-tests--shown) text))))
  ;; At the end of an answer, before a block, and without the last newline.
  (dolist (rest '("" "\n" "\n```\nx\n```\n"))
    (contexture-conversation-markdown-tests--with
        (concat "| a | b |\n|---|---|\n| cc | d |" rest)
      (should (string-prefix-p "| a  | b |\n|----|---|\n| cc | d |"
                               (contexture-conversation-markdown-tests--shown))))))

(ert-deftest contexture-conversation-markdown-leaves-a-table-that-is-wider-than-its-window ()
  (save-window-excursion
    (with-temp-buffer
      (switch-to-buffer (current-buffer))
      (let ((text (format "| a | b |\n|---|---|\n| c | %s |\n" (make-string 200 ?x))))
        (contexture-conversation-markdown-tests--draw text)
        (should (equal (contexture-conversation-markdown-tests--shown) text))))))

(ert-deftest contexture-conversation-markdown-gives-code-the-faces-of-its-language ()
  (contexture-conversation-markdown-tests--with
      "Do\n```elisp\n(defun f ()\n  \"Doc.\"\n  (car x)) ; why\n```\nand **so**.\n"
    (should (memq 'font-lock-keyword-face (contexture-conversation-markdown-tests--faces "defun")))
    (should (memq 'font-lock-doc-face (contexture-conversation-markdown-tests--faces "Doc.")))
    (should (memq 'font-lock-comment-face (contexture-conversation-markdown-tests--faces "why")))
    (should (memq 'contexture-conversation-code (contexture-conversation-markdown-tests--faces "(car")))
    (should (equal (contexture-conversation-markdown-tests--faces "```") '(contexture-conversation-markup)))
    (should (memq 'bold (contexture-conversation-markdown-tests--faces "so")))))

(ert-deftest contexture-conversation-markdown-is-the-same-in-any-pieces ()
  (let* ((text "# H\n\nA **b** `c`\n\n```elisp\n(defun f ()\n  \"D *x*\"\n  1)\n```\n- [e](f)\n\n| a | **b** |\n|--:|---|\n| `c` | dd |\n~~~\nq\n")
         (whole (contexture-conversation-markdown-tests--with text
                  (contexture-conversation-markdown-tests--picture))))
    (dotimes (at (length text))
      (should (equal (contexture-conversation-markdown-tests--with
                         (list (substring text 0 at) (substring text at))
                       (contexture-conversation-markdown-tests--picture))
                     whole)))
    (should (equal (contexture-conversation-markdown-tests--with (mapcar #'string text)
                     (contexture-conversation-markdown-tests--picture))
                   whole))))

(ert-deftest contexture-conversation-markdown-draws-a-line-before-it-is-whole ()
  (with-temp-buffer
    (let ((state (contexture-markdown--begin nil)))
      (contexture-markdown--insert state "Is **this")
      (should-not (contexture-conversation-markdown-tests--look "this" 'face))
      (goto-char (point-max))
      (contexture-markdown--insert state "** it")
      (should (memq 'bold (contexture-conversation-markdown-tests--faces "this"))))))

(ert-deftest contexture-conversation-markdown-knows-blocks-and-their-text ()
  (contexture-conversation-markdown-tests--with
      "1. So:\n   ```sh\n   ls |\n     wc\n   ```\n````markdown\n```\nx\n```\n````\n```\nopen\n"
    (let ((text (lambda (at)
                  (goto-char (point-min))
                  (search-forward at)
                  (contexture-markdown--block-text (match-beginning 0)))))
      (should (equal (funcall text "ls |") "ls |\n  wc\n"))
      (should (equal (funcall text "x\n") "```\nx\n```\n"))
      (should (equal (funcall text "open") "open\n"))
      (should (equal (contexture-conversation--block-language
                      (contexture-conversation-markdown-tests--look "ls |" 'contexture-block))
                     "sh")))))

(ert-deftest contexture-conversation-markdown-calls-no-function-but-a-major-mode ()
  (dolist (language '("server" "kill-emacs" "" "global-auto-revert" "no-such" "whitespace"))
    (should-not (contexture-markdown--mode language)))
  (should (eq (contexture-markdown--mode "python") 'python-mode))
  (should (eq (contexture-markdown--mode "conf") 'conf-mode))
  (contexture-conversation-markdown-tests--with "```kill-emacs\nx\n```\n"
    (should (equal (contexture-conversation-markdown-tests--faces "x") '(contexture-conversation-code)))))

(defun contexture-conversation-markdown-tests--modes ()
  "Return the names of all functions that are called like modes, without \"-mode\"."
  (let (names)
    (mapatoms (lambda (symbol)
                (when (and (fboundp symbol) (string-suffix-p "-mode" (symbol-name symbol)))
                  (push (string-remove-suffix "-mode" (symbol-name symbol)) names))))
    (sort names #'string<)))

(ert-deftest contexture-conversation-markdown-takes-modes-from-a-list ()
  (dolist (name (contexture-conversation-markdown-tests--modes))
    (let ((mode (contexture-markdown--mode name)))
      (should (or (null mode) (memq mode contexture--code-modes)
                  (rassq mode contexture-conversation-languages))))))

(ert-deftest contexture-conversation-markdown-lets-no-code-choose-a-mode ()
  (require 'org)
  (require 'diff-mode)
  (let* ((names (contexture-conversation-markdown-tests--modes))
         (blocks (mapconcat (lambda (name) (format "#+begin_src %s\nx\n#+end_src\n" name))
                            names ""))
         (hunks (mapconcat (lambda (name)
                             (format "--- x.%s\n+++ x.%s\n@@ -1,1 +1,1 @@\n-a\n+b\n" name name))
                           '("el" "py" "org" "zip" "pdf") ""))
         (state (lambda ()
                  (list (mapcar (lambda (mode) (and (boundp mode) (default-value mode)))
                                minor-mode-list)
                        (and (boundp 'auto-save-visited-mode) auto-save-visited-mode))))
         (before (funcall state))
         chosen)
    (should (member "auto-save-visited" names))
    (should (> (length names) 300))
    (cl-letf (((symbol-function 'org-src-font-lock-fontify-block)
               (lambda (&rest arguments) (push arguments chosen)))
              ((symbol-function 'diff-syntax-fontify-props)
               (lambda (&rest arguments) (push arguments chosen))))
      (dolist (text (list (format "~~~org\n%s~~~\n" blocks) (format "```diff\n%s```\n" hunks)
                          (format "```markdown\n%s```\n"
                                  (mapconcat (lambda (name) (format "~~~%s\nx\n~~~\n" name))
                                             names ""))))
        (contexture-conversation-markdown-tests--with text)))
    (should-not chosen)
    (should (equal (funcall state) before))))

(ert-deftest contexture-conversation-markdown-survives-a-mode-that-fails ()
  (let ((contexture-conversation-languages '(("bad" . error))))
    (contexture-conversation-markdown-tests--with "```bad\nx\ny\n```\nafter\n"
      (should (equal (contexture-conversation-markdown-tests--faces "x") '(contexture-conversation-code))))))

(ert-deftest contexture-conversation-markdown-runs-no-hooks-of-users ()
  (let* ((ran nil) (emacs-lisp-mode-hook (list (lambda () (setq ran t)))))
    (when (get-buffer " *contexture code: emacs-lisp-mode*")
      (kill-buffer " *contexture code: emacs-lisp-mode*"))
    (contexture-conversation-markdown-tests--with "```elisp\n(car x)\n```\n"
      (should-not ran))))

(ert-deftest contexture-conversation-markdown-breaks-long-lines-and-gives-them-back ()
  (let ((words (mapconcat #'identity (make-list 2000 "word") " "))
        (solid (make-string 9000 ?x)))
    (dolist (text (list words solid (concat words "\n" solid "\nend\n")))
      (dolist (pieces (list (list text)
                            (contexture-conversation-markdown-tests--pieces text 37)))
        (contexture-conversation-markdown-tests--with pieces
          (goto-char (point-min))
          (while (not (eobp))
            (should (<= (- (line-end-position) (point))
                        (+ 2 (* 2 contexture-markdown--longest))))
            (forward-line))
          (should (equal (contexture-markdown--text (point-min) (point-max)) text)))))))

(ert-deftest contexture-conversation-markdown-takes-a-long-line-in-little-time ()
  (let ((text (make-string 2000000 ?x)) (start (contexture-test-busy-seconds)))
    (contexture-conversation-markdown-tests--with (contexture-conversation-markdown-tests--pieces text 20000)
      (should (< (- (contexture-test-busy-seconds) start) 5)))))

(ert-deftest contexture-conversation-markdown-keeps-what-looks-odd ()
  (dolist (text '("" "\n" "```" "```\n" "**" "` ` `" "[a](" "# " "- " "> " "~~~~\n```\n"
                  "*a**b*" "\0\1\n" "\u202e evil\n" "```elisp\n\"unfinished\n"))
    (contexture-conversation-markdown-tests--with text
      (should (equal (contexture-markdown--text (point-min) (point-max)) text)))))

;;;; Links

(defmacro contexture-conversation-markdown-tests--with-file (text &rest body)
  "Run BODY where TEXT is drawn, in a directory with the file src/a.el."
  (declare (indent 1) (debug t))
  (declare (indent 1) (debug t))
  `(let ((default-directory (file-name-as-directory (make-temp-file "links" t))))
     (unwind-protect
         (progn
           (make-directory "src")
           (write-region "one\ntwo\nthree\n" nil "src/a.el" nil 'quiet)
           (save-window-excursion
             (contexture-conversation-markdown-tests--with ,text ,@body)))
       (delete-directory default-directory t))))

(defun contexture-conversation-markdown-tests--follow (text)
  "Follow the link that TEXT begins with; return the file's line there."
  (goto-char (point-min))
  (search-forward text)
  (goto-char (match-beginning 0))
  (save-current-buffer
    (contexture-conversation-follow-link)
    (prog1 (list (buffer-name) (line-number-at-pos))
      (kill-buffer))))

(ert-deftest contexture-conversation-markdown-follows-links-to-files-and-lines ()
  (contexture-conversation-markdown-tests--with-file
      "See `src/a.el:2` and [there](src/a.el#L3), `src/a.el`, not `src/b.el`.\n"
    (should (eq (contexture-conversation-markdown-tests--look "src/a.el:2" 'keymap)
                contexture-conversation-link-map))
    (should (equal (contexture-conversation-markdown-tests--follow "src/a.el:2") '("a.el" 2)))
    (should (equal (contexture-conversation-markdown-tests--follow "there") '("a.el" 3)))
    (should (equal (contexture-conversation-markdown-tests--follow "src/a.el`,") '("a.el" 1)))
    (should-not (contexture-conversation-markdown-tests--look "src/b.el" 'contexture-link))))

(ert-deftest contexture-conversation-markdown-follows-links-to-pages-only ()
  (let (visited)
    (cl-letf (((symbol-function 'browse-url) (lambda (url &rest _) (push url visited))))
      (contexture-conversation-markdown-tests--with-file
          "[page](https://example.org/a) [bad](javascript:alert) [far](/ssh:host:/etc/x)\n"
        (goto-char (point-min))
        (search-forward "page")
        (goto-char (match-beginning 0))
        (contexture-conversation-follow-link)
        (dolist (refused '("bad" "far"))
          (should-error (contexture-conversation-markdown-tests--follow refused) :type 'user-error))
        (should (equal visited '("https://example.org/a")))))))

(ert-deftest contexture-conversation-markdown-links-attach-nothing-to-mails ()
  (dolist (more '("" "?attach=/etc/passwd" "?subject=a&body=%3C%23part%20filename=%22/etc/passwd%22%3E"
                  "?"))
    (let (visited)
      (cl-letf (((symbol-function 'browse-url) (lambda (url &rest _) (push url visited))))
        (contexture-conversation-markdown-tests--with-file
            (format "[write](mailto:a@example.org%s)\n" more)
          (goto-char (point-min))
          (search-forward "write")
          (goto-char (match-beginning 0))
          (contexture-conversation-follow-link)
          (should (equal visited '("mailto:a@example.org"))))))))

(ert-deftest contexture-conversation-markdown-asks-no-other-machine-for-files ()
  (contexture-conversation-markdown-tests--with-file "nothing\n"
    (let ((default-directory "/ssh:nobody@host.invalid:/"))
      (should-not (contexture-markdown--place "src/a.el:1")))))

(ert-deftest contexture-conversation-markdown-takes-the-mode-that-the-user-prefers ()
  (defvar major-mode-remap-alist)
  (let ((major-mode-remap-alist '((python-mode . text-mode))))
    (should (eq (contexture-markdown--mode "python") 'text-mode)))
  (let (major-mode-remap-alist)
    (should (eq (contexture-markdown--mode "python") 'python-mode))))

(ert-deftest contexture-markdown-code-that-nests-deep-has-no-faces ()
  "C mode would take half a minute for 20 KB of such code."
  (pcase-dolist (`(,code ,drawn) `(("int f() { return 1; }" t) (,(make-string 5000 ?\() nil)))
    (let (fontified)
      (cl-letf (((symbol-function 'font-lock-fontify-region)
                 (lambda (&rest _) (setq fontified t))))
        (with-temp-buffer
          (insert code)
          (contexture-markdown--highlight
           (contexture-markdown--make-state)
           (contexture-conversation--make-block :mode 'c-mode) (point-min) (point-max))))
      (should (eq fontified drawn)))))

;;;; Long texts

(ert-deftest contexture-conversation-markdown-draws-long-texts-in-slices ()
  (dolist (line '("Some **bold** words, `code`, `src/main.rs:12`, [a link](http://x.y/z) and *it*."
                  "`a/b.c`" "`d/e.f` `g/h.i`  " "| a | b | c |" "```c\nint f(void);\n```" "- \u200bx" "   f(\"x\") + {'y'}"))
    (let ((text (concat "| a | b |\n|---|---|\n"
                        (mapconcat #'identity (make-list (/ 16000 (length line)) line) "\n")
                        "\n```emacs-lisp\n"
                        (mapconcat #'identity (make-list 300 "(defun a () \"b\" 'c)") "\n")
                        "\n```\n" line))
          (slices 0) (contexture--drawing-seconds 10)
          ;; A quick machine needs more than three slices, too.
          (contexture-conversation--draw-at-once 0.002) looks)
      (dolist (sliced '(t nil))
        (with-temp-buffer
          (contexture-conversation--lay-out)
          (contexture-conversation--add-message :user "Before" nil)
          (contexture-conversation--add-message :assistant text "Model")
          (if (not sliced) (contexture-conversation--draw-all)
            (contexture-conversation--draw-seen (1- contexture-conversation--tail))
            (goto-char contexture-conversation--tail)
            (search-backward line)
            (should (contexture-conversation--undrawn-p (point)))
            (contexture-conversation--draw-seen (point))
            (while contexture-conversation--seen
              (cl-incf slices)
              (cancel-timer contexture-conversation--seen-timer)
              (contexture-test-at-once (contexture-conversation--draw-more (current-buffer))))
            ;; What nobody sees is not drawn.
            (should (text-property-any (point-min) (point-max) 'category
                                       'contexture-conversation-undrawn))
            (contexture-conversation--draw-all)
            (should-not contexture-conversation--drawing))
          (push (cl-loop for (text . look) in (contexture-conversation-markdown-tests--picture)
                         append (mapcar (lambda (char) (cons char look)) text))
                looks)))
      (should (> slices 3))
      (should (equal (car looks) (cadr looks))))))

(ert-deftest contexture-conversation-markdown-draws-anew-what-was-drawn-in-part ()
  (with-temp-buffer
    (contexture-conversation--lay-out)
    (dotimes (_ 2)
      (let ((message (contexture-conversation--add-message
                      :assistant (concat "```c\n" (make-string 9000 ?\n) "*a*\n```\n*b*") "Model"))
            (contexture-conversation--draw-at-once 0))
        (goto-char contexture-conversation--tail)
        (search-backward "*b*")
        (contexture-conversation--draw-to (point) (float-time))
        (should (contexture-conversation--undrawn-p (point)))
        (contexture-conversation--delete-from message)))
    (contexture-conversation--add-message :assistant "*a*\n```c\n" "Model")
    (contexture-conversation--draw-all)
    (should-not contexture-conversation--drawing)
    (should (memq 'italic (contexture-conversation-markdown-tests--faces "a*")))))

(ert-deftest contexture-conversation-markdown-blanks-of-tables-take-no-memory ()
  (let ((displays (lambda (text)
                    (contexture-conversation-markdown-tests--with text
                      (cl-loop for position from (point-min) below (point-max)
                               for display = (get-text-property position 'display)
                               when (and display (string-search "|" display))
                               collect display)))))
    ;; A wide cell, while no window shows the table.
    (should-not (funcall displays (concat "| " (make-string 1900 ?x) " |\n|---|\n"
                                          (apply #'concat (make-list 500 "| a |\n")))))
    (let ((strings (funcall displays (concat "| " (make-string 150 ?x) " |\n|---|\n"
                                             (apply #'concat (make-list 500 "| a |\n"))))))
      (should (> (length strings) 1000))
      (should (< (length (cl-remove-duplicates strings :test #'eq)) 10)))
    ;; Two bars beside each other are two, also if they have as many blanks.
    (contexture-conversation-markdown-tests--with "| aa || b |\n|---|---|---|\n| aaa || b |\n"
      (goto-char (point-min))
      (let ((count 0))
        (while (search-forward "||" nil t)
          (cl-incf count)
          (should-not (eq (get-text-property (- (point) 2) 'display)
                          (get-text-property (1- (point)) 'display))))
        (should (= count 2))))
    (should-not (eq (contexture-markdown--bar 1 0 7) (contexture-markdown--bar 1 0 8)))))

(ert-deftest contexture-conversation-markdown-aligns-no-huge-table ()
  (dolist (rows '(100 2000))
    (contexture-conversation-markdown-tests--with
        (list "| a | b |\n|---|---|\n" (apply #'concat (make-list rows "| long | x |\n")))
      (should (eq (< rows 1000)
                  (and (contexture-conversation-markdown-tests--look "| b |" 'display) t))))))

(provide 'contexture-conversation-markdown-tests)
;;; contexture-conversation-markdown-tests.el ends here
